"""BERT of keras-hub, compiled and trained by its own task models.

Its masked LM has no next sentence prediction.
"""

from benchmarks.step_workers import protocol


def prepare(setting):
    """A step is `train_on_batch`, which does what `fit` does with a batch."""
    import keras
    import keras_hub

    keras.utils.set_random_seed(0)
    if setting.precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=protocol.VOCAB_SIZE,
        num_layers=setting.num_hidden_layers,
        num_heads=setting.num_attention_heads,
        hidden_dim=setting.hidden_size,
        intermediate_dim=setting.intermediate_size,
        dropout=protocol.DROPOUT,
        max_sequence_length=protocol.MAX_POSITIONS,
    )
    batch = protocol.random_batch(setting)
    inputs = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
    }
    labels, weights = batch["label_ids"], None
    if setting.num_predictions:
        model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
        inputs["mask_positions"] = batch["masked_lm_positions"]
        labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
    else:
        model = keras_hub.models.BertTextClassifier(
            backbone, num_classes=2, preprocessor=None, dropout=protocol.DROPOUT
        )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.AdamW(
            protocol.LEARNING_RATE,
            weight_decay=protocol.WEIGHT_DECAY,
            global_clipnorm=protocol.CLIP_NORM,
        ),
        jit_compile=setting.jit_compile,
    )

    def step():
        logs = model.train_on_batch(inputs, labels, weights, return_dict=True)
        return float(logs["loss"])

    return step


if __name__ == "__main__":
    protocol.serve(prepare, ["tensorflow", "keras", "keras_hub"])
