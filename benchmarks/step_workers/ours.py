"""Our trainer with a model of ours, as the scripts run them."""

from benchmarks.step_workers import protocol
from modeling import config as config_lib


def make_config(setting):
    """The sizes as a BertConfig."""
    return config_lib.BertConfig(**setting.bert_config())


def prepare(setting):
    """A step is an update and the reading of its loss."""
    import tensorflow as tf

    import strategies
    import trainer as trainer_lib
    import training
    from modeling import losses, models, optimization

    config = make_config(setting)
    strategy = strategies.make()
    with training.new_model(strategy, 0, setting.precision):
        if setting.num_predictions:
            model, objective = models.BertForPretraining(config), losses.PRETRAINING
        else:
            model = models.BertForSequenceClassification(config, 2)
            objective = losses.CLASSIFICATION
    schedule = optimization.warmup_then_decay(protocol.LEARNING_RATE, 1000, 100)
    optimizer = training.make_optimizer(strategy, model, schedule)
    trainer = trainer_lib.Trainer(strategy, model, optimizer, objective, seed=0)
    dataset = tf.data.Dataset.from_tensors(protocol.random_batch(setting)).repeat()
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    return lambda: float(trainer.update(iterator)["loss"])


if __name__ == "__main__":
    protocol.serve(prepare, ["tensorflow", "keras", "training"])
