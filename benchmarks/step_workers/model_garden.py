"""BERT of the TensorFlow Model Garden (tf-models-official), by its own tasks."""

import os

from benchmarks.step_workers import protocol

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # it is written for Keras 2


def prepare(setting):
    """A step is the task's, as a TensorFlow function; bfloat16 is Keras's policy."""
    import tensorflow as tf
    from official.modeling import optimization, performance

    tf.keras.utils.set_random_seed(0)
    if setting.precision == "bfloat16":
        performance.set_mixed_precision_policy("bfloat16")
    task = make_task(setting)
    model = task.build_model()
    rule = {
        "weight_decay_rate": protocol.WEIGHT_DECAY,
        "exclude_from_weight_decay": ["LayerNorm", "layer_norm", "bias"],
        "gradient_clip_norm": protocol.CLIP_NORM,
    }
    rate = {"initial_learning_rate": protocol.LEARNING_RATE, "decay_steps": 1000}
    config = optimization.OptimizationConfig(
        {
            "optimizer": {"type": "adamw", "adamw": rule},
            "learning_rate": {"type": "polynomial", "polynomial": rate},
            "warmup": {"type": "polynomial", "polynomial": {"warmup_steps": 100}},
        }
    )
    optimizer, metrics = task.create_optimizer(config), task.build_metrics()
    batch = protocol.random_batch(setting)
    names = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}
    batch = {names.get(name, name): array for name, array in batch.items()}
    iterator = iter(tf.data.Dataset.from_tensors(batch).repeat())

    @tf.function
    def update():
        return task.train_step(next(iterator), model, optimizer, metrics)

    return lambda: float(update()["loss"])


def make_task(setting):
    """Its own task of classification, or of pre-training."""
    from official.nlp.configs import bert, encoders
    from official.nlp.data import pretrain_dataloader
    from official.nlp.tasks import masked_lm, sentence_prediction

    sizes = encoders.BertEncoderConfig(
        vocab_size=protocol.VOCAB_SIZE,
        hidden_size=setting.hidden_size,
        num_layers=setting.num_hidden_layers,
        num_attention_heads=setting.num_attention_heads,
        intermediate_size=setting.intermediate_size,
        dropout_rate=protocol.DROPOUT,
        attention_dropout_rate=protocol.DROPOUT,
        max_position_embeddings=protocol.MAX_POSITIONS,
    )
    encoder = encoders.EncoderConfig(type="bert", bert=sizes)
    if not setting.num_predictions:
        model = sentence_prediction.ModelConfig(num_classes=2, encoder=encoder)
        config = sentence_prediction.SentencePredictionConfig(model=model)
        return sentence_prediction.SentencePredictionTask(config)
    next_sentence = bert.ClsHeadConfig(
        inner_dim=setting.hidden_size,
        num_classes=2,
        dropout_rate=protocol.DROPOUT,
        name="next_sentence",
    )
    config = masked_lm.MaskedLMConfig(
        model=bert.PretrainerConfig(encoder=encoder, cls_heads=[next_sentence]),
        train_data=pretrain_dataloader.BertPretrainDataConfig(),
    )
    return masked_lm.MaskedLMTask(config)


if __name__ == "__main__":
    protocol.serve(prepare, ["tensorflow", "tf_keras", "official.nlp.tasks"])
