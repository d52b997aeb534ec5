"""What a training costs, worked out from the sizes: weights, arithmetic, memory.

Nothing here needs TensorFlow, and nothing is measured but what a layer at work takes. A
multiplication with an addition counts as two floating-point operations (FLOPs). Only
matrix products count: what happens element by element is a few percent, looking up
embeddings is none.

S seq_length, H hidden_size, I intermediate_size, N num_attention_heads, P predictions
of a sequence, V vocab_size.
"""

import dataclasses

from modeling import config as config_lib

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def num_parameters(config: config_lib.BertConfig, pretraining: bool = False) -> int:
    """Trainable weights of the encoder with its pooler, and of the heads.

    Args:
        config: of the model.
        pretraining: with the two heads of pre-training (the masked LM's output matrix
            is the word embedding table).
    """
    size, inner = config.hidden_size, config.intermediate_size
    square, norm = size * size + size, 2 * size
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    feed_forward = size * inner + inner + inner * size + size
    layer = 4 * square + norm + feed_forward + norm
    count = rows * size + norm + config.num_hidden_layers * layer + square
    if pretraining:
        count += square + norm + config.vocab_size + 2 * (size + 1)
    return count


def forward_flops(
    config: config_lib.BertConfig,
    num_sequences: float,
    seq_length: float,
    num_predictions: int = 0,
) -> float:
    """FLOPs of the encoder, the pooler and the masked LM head.

    A layer has 8 H² + 4 H I a token in its linear maps, which is 24 H² where I = 4 H,
    and 4 S H in attention.

    Args:
        config: of the model.
        num_sequences: that go through it.
        seq_length: with padding; a mean where it differs.
        num_predictions: of a sequence; 0: there is no masked LM head.
    """
    size, inner = config.hidden_size, config.intermediate_size
    token = 8 * size**2 + 4 * size * inner + 4 * seq_length * size
    prediction = 2 * size**2 + 2 * size * config.vocab_size
    sequence = (
        config.num_hidden_layers * seq_length * token
        + 2 * size**2  # the pooler
        + num_predictions * prediction
    )
    return num_sequences * sequence


def training_flops(
    config: config_lib.BertConfig,
    num_sequences: float,
    seq_length: float,
    num_predictions: int = 0,
) -> float:
    """The same with the backward pass, which has two products for one.

    Model FLOPs: what --recompute does twice counts once.
    """
    return 3 * forward_flops(config, num_sequences, seq_length, num_predictions)


@dataclasses.dataclass(frozen=True)
class Update:
    """An update of the weights, and how it is computed.

    Attributes:
        config: of the model.
        batch_size: sequences of the whole batch; several for an example of several
            choices.
        seq_length: with padding.
        num_predictions: of a sequence; 0: not pre-training.
        precision: of `BYTES`.
        gradient_accumulation_steps: parts that a device takes one after the other.
        num_devices: that share the batch.
        recompute: compute the insides of layers again in the backward pass.
    """

    config: config_lib.BertConfig
    batch_size: int
    seq_length: int
    num_predictions: int = 0
    precision: str = "float32"
    gradient_accumulation_steps: int = 1
    num_devices: int = 1
    recompute: bool = False

    @property
    def num_parameters(self) -> int:
        return num_parameters(self.config, self.num_predictions > 0)

    @property
    def flops(self) -> float:
        """Model FLOPs, on all devices together."""
        return training_flops(
            self.config, self.batch_size, self.seq_length, self.num_predictions
        )

    def memory(self) -> dict[str, float]:
        """Bytes of a device at the peak, by what holds them; an estimate.

        Assumed: weights, gradients and Adam's two moments are float32, and there are
        two sets of gradients where there are several parts (the sum and the next one);
        of a layer stays what `_kept_by_layer` counts, or its input with `recompute`,
        and the layer at work takes as much twice more; of the predictions there are
        three arrays of V float32 numbers (logits, probabilities, gradient). Not in it:
        TensorFlow itself (0.6 GiB on CPU), and what its allocator holds unused.
        With these 0.6 GiB, measured peaks on CPU were 2 to 12 % above the estimate (L6
        H384, 32 x 128, and BERT-Base, 8 x 128; float32 and bfloat16). L6, 64 x 128:
        4 % below, 11 % below with `recompute`, 16 % above with 4 accumulation steps.
        """
        parts = self.num_devices * self.gradient_accumulation_steps
        sequences = self.batch_size / parts
        layers, tokens = self.config.num_hidden_layers, sequences * self.seq_length
        kept = tokens * self._kept_by_layer()
        stays, at_work = kept, 2
        if self.recompute:
            at_work = 3
            stays = tokens * self.config.hidden_size * BYTES[self.precision]
        predictions = sequences * self.num_predictions
        return {
            "weights and moments": 12 * self.num_parameters,
            "gradients": (8 if parts > 1 else 4) * self.num_parameters,
            "activations": layers * stays + at_work * kept,
            "logits": 12 * predictions * self.config.vocab_size,
        }

    def _kept_by_layer(self) -> float:
        """Bytes that the backward pass needs, of a token."""
        size, inner = self.config.hidden_size, self.config.intermediate_size
        scores = self.config.num_attention_heads * self.seq_length
        width = BYTES[self.precision]
        return (
            # Query, key, value, context; what both norms take and what they give.
            8 * size * width
            # In float32: the context once more, by heads.
            + 4 * size
            # What GELU takes and what it gives.
            + 2 * inner * width
            # The probabilities of attention, and what dropout leaves of them.
            + 2 * scores * width
        )


def describe(update: Update, num_steps: int, num_sequences: int) -> str:
    """Some lines to show before a training starts.

    Args:
        update: what is done in every step.
        num_steps: updates.
        num_sequences: of the training set.
    """
    tokens = num_steps * update.batch_size * update.seq_length
    epochs = num_steps * update.batch_size / num_sequences
    memory = update.memory()
    parts = ", ".join(f"{name} {_gib(size)}" for name, size in memory.items() if size)
    return "\n".join(
        [
            f"{update.num_parameters / 1e6:.1f} M parameters; {update.flops:.2g} FLOPs "
            f"an update, {num_steps * update.flops:.2g} in all",
            f"at most {tokens:.3g} tokens, with padding; {epochs:.3g} epochs of "
            f"{num_sequences} sequences",
            f"memory about {_gib(sum(memory.values()))} GiB a device: {parts}",
        ]
    )


def advice(update: Update) -> str:
    """What to say when the memory was not enough: the flags that need less of it.

    With each stands what the update would need with it alone.
    """

    def needed(**changes):
        changed = dataclasses.replace(update, **changes)
        return f"{_gib(sum(changed.memory().values()))} GiB"

    steps = 2 * update.gradient_accumulation_steps
    half = max(1, update.batch_size // 2)
    options = [f"half the --train_batch_size ({needed(batch_size=half)})"]
    if update.batch_size % (steps * update.num_devices) == 0:
        in_parts = needed(gradient_accumulation_steps=steps)
        options.insert(0, f"--gradient_accumulation_steps={steps} ({in_parts})")
    if update.precision == "float32":
        options.append(f"--precision=bfloat16 ({needed(precision='bfloat16')})")
    if not update.recompute:
        options.append(f"--recompute ({needed(recompute=True)})")
    if not update.num_predictions:  # records have their length
        length = max(1, update.seq_length // 2)
        options.append(f"--max_seq_length={length} ({needed(seq_length=length)})")
    return (
        f"an update needs about {needed()} on each device; less with "
        f"{'; '.join(options)}"
    )


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f}"
