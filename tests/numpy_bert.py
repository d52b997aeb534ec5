"""BERT once more in float64 NumPy, slow and obvious, for tests to compare with.

Written from the paper (Devlin et al. 2018; Vaswani et al. 2017) one example, one head
and one position at a time where that is plainer. `weights` is a dict of the released
checkpoints' names; `config` is anything with the attributes of bert_config.json.
`dropout` is a function of (array, rate), called wherever BERT has dropout.
"""

import math
import re

import numpy as np


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_exact(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_exact": gelu_exact,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "linear": lambda x: x,
}


def no_dropout(x, _):
    return x


def softmax(x):
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def log_softmax(x):
    x = x - np.max(x, axis=-1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def random_weights(config, rng, num_labels=None):
    """A weights dict in which no bias is 0 and no gamma 1, so that each one counts."""
    size, inner = config.hidden_size, config.intermediate_size

    def normal(*shape):
        return rng.normal(0, 0.3, shape)

    def dense(name, fan_in, fan_out):
        return {
            f"{name}/kernel": normal(fan_in, fan_out),
            f"{name}/bias": normal(fan_out),
        }

    def norm(name):
        return {
            f"{name}/LayerNorm/gamma": 1 + normal(size),
            f"{name}/LayerNorm/beta": normal(size),
        }

    weights = {
        "bert/embeddings/word_embeddings": normal(config.vocab_size, size),
        "bert/embeddings/token_type_embeddings": normal(config.type_vocab_size, size),
        "bert/embeddings/position_embeddings": normal(
            config.max_position_embeddings, size
        ),
        **norm("bert/embeddings"),
        **dense("bert/pooler/dense", size, size),
    }
    for i in range(config.num_hidden_layers):
        scope = f"bert/encoder/layer_{i}"
        for part in ("query", "key", "value"):
            weights |= dense(f"{scope}/attention/self/{part}", size, size)
        weights |= dense(f"{scope}/attention/output/dense", size, size)
        weights |= norm(f"{scope}/attention/output")
        weights |= dense(f"{scope}/intermediate/dense", size, inner)
        weights |= dense(f"{scope}/output/dense", inner, size)
        weights |= norm(f"{scope}/output")
    if num_labels:
        weights["output_weights"] = normal(num_labels, size)
        weights["output_bias"] = normal(num_labels)
        return weights
    weights |= dense("cls/predictions/transform/dense", size, size)
    weights |= norm("cls/predictions/transform")
    weights["cls/predictions/output_bias"] = normal(config.vocab_size)
    weights["cls/seq_relationship/output_weights"] = normal(2, size)
    weights["cls/seq_relationship/output_bias"] = normal(2)
    return weights


def layer_norm(weights, scope, x, epsilon):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    normed = (x - mean) / np.sqrt(variance + epsilon)
    gamma, beta = (weights[f"{scope}/LayerNorm/{name}"] for name in ("gamma", "beta"))
    return normed * gamma + beta


def linear(weights, scope, x):
    return x @ weights[f"{scope}/kernel"] + weights[f"{scope}/bias"]


def embed(weights, config, input_ids, segment_ids, dropout):
    """[seq_length] twice → [seq_length, hidden_size]."""
    words = weights["bert/embeddings/word_embeddings"]
    segments = weights["bert/embeddings/token_type_embeddings"]
    positions = weights["bert/embeddings/position_embeddings"]
    rows = []
    for position, (token, segment) in enumerate(
        zip(input_ids, segment_ids, strict=True)
    ):
        row = words[token] + positions[position]
        if segment < len(segments):  # the original adds nothing for others
            row = row + segments[segment]
        rows.append(row)
    x = layer_norm(weights, "bert/embeddings", np.array(rows), config.layer_norm_eps)
    return dropout(x, config.hidden_dropout_prob)


def attend(weights, config, scope, x, input_mask, dropout):
    """Context [seq_length, hidden_size], probs [heads, seq_length, seq_length]."""
    query = linear(weights, f"{scope}/query", x)
    key = linear(weights, f"{scope}/key", x)
    value = linear(weights, f"{scope}/value", x)
    head_size = config.hidden_size // config.num_attention_heads
    contexts, probs = [], []
    for head in range(config.num_attention_heads):
        columns = slice(head * head_size, (head + 1) * head_size)
        scores = query[:, columns] @ key[:, columns].T / np.sqrt(head_size)
        scores = scores + (1 - input_mask) * -10000.0
        probs.append(softmax(scores))
        kept = dropout(probs[-1], config.attention_probs_dropout_prob)
        contexts.append(kept @ value[:, columns])
    return np.concatenate(contexts, axis=-1), np.array(probs)


def encode_one(weights, config, rows, dropout):
    """One example; see `encode`."""
    input_ids, input_mask, segment_ids = rows
    activation, epsilon = ACTIVATIONS[config.hidden_act], config.layer_norm_eps
    x = embed(weights, config, input_ids, segment_ids, dropout)
    encoder_outputs, attention_probs = [x], []
    for i in range(config.num_hidden_layers):
        scope = f"bert/encoder/layer_{i}"
        context, probs = attend(
            weights, config, f"{scope}/attention/self", x, input_mask, dropout
        )
        y = linear(weights, f"{scope}/attention/output/dense", context)
        y = dropout(y, config.hidden_dropout_prob)
        x = layer_norm(weights, f"{scope}/attention/output", y + x, epsilon)
        y = activation(linear(weights, f"{scope}/intermediate/dense", x))
        y = linear(weights, f"{scope}/output/dense", y)
        y = dropout(y, config.hidden_dropout_prob)
        x = layer_norm(weights, f"{scope}/output", y + x, epsilon)
        encoder_outputs.append(x)
        attention_probs.append(probs)
    return {
        "sequence_output": x,
        "pooled_output": np.tanh(linear(weights, "bert/pooler/dense", x[0])),
        "encoder_outputs": encoder_outputs,
        "attention_probs": attention_probs,
    }


def encode(weights, config, batch, dropout=no_dropout):
    """Encoder and pooler.

    Returns:
        dict of sequence_output [batch, seq_length, hidden_size]; pooled_output [batch,
        hidden_size]; encoder_outputs, the embeddings and every layer; attention_probs,
        for every layer [batch, heads, seq_length, seq_length].
    """
    ids = batch["input_ids"]
    masks = batch.get("input_mask", np.ones_like(ids))
    segments = batch.get("segment_ids", np.zeros_like(ids))
    examples = [
        encode_one(weights, config, rows, dropout)
        for rows in zip(ids, masks, segments, strict=True)
    ]
    return {
        name: [
            np.array(layer) for layer in zip(*(e[name] for e in examples), strict=True)
        ]
        if isinstance(examples[0][name], list)
        else np.array([e[name] for e in examples])
        for name in examples[0]
    }


def pretraining(weights, config, batch, dropout=no_dropout):
    """Outputs of the encoder; logits, and losses if the batch has the labels."""
    outputs = encode(weights, config, batch, dropout)
    hidden_states = np.array(
        [
            [row[position] for position in positions]
            for row, positions in zip(
                outputs["sequence_output"], batch["masked_lm_positions"], strict=True
            )
        ]
    )
    scope = "cls/predictions/transform"
    x = linear(weights, f"{scope}/dense", hidden_states)
    x = ACTIVATIONS[config.hidden_act](x)
    x = layer_norm(weights, scope, x, config.layer_norm_eps)
    masked_lm = x @ weights["bert/embeddings/word_embeddings"].T
    masked_lm = masked_lm + weights["cls/predictions/output_bias"]
    next_sentence = (
        outputs["pooled_output"] @ weights["cls/seq_relationship/output_weights"].T
        + weights["cls/seq_relationship/output_bias"]
    )
    outputs |= {"masked_lm_logits": masked_lm, "next_sentence_logits": next_sentence}

    if "masked_lm_ids" in batch:
        losses = cross_entropy(masked_lm, batch["masked_lm_ids"])
        lm_weights = batch["masked_lm_weights"].astype(np.float64)
        outputs["masked_lm_losses"] = losses
        outputs["masked_lm_loss"] = np.sum(losses * lm_weights) / (
            np.sum(lm_weights) + 1e-5
        )
        losses = cross_entropy(next_sentence, batch["next_sentence_labels"][:, 0])
        outputs["next_sentence_losses"] = losses
        outputs["next_sentence_loss"] = np.mean(losses)
        outputs["loss"] = outputs["masked_lm_loss"] + outputs["next_sentence_loss"]
    return outputs


def classify(weights, config, batch, dropout=no_dropout):
    """Outputs of the encoder, logits, and the losses if the batch has `label_ids`."""
    outputs = encode(weights, config, batch, dropout)
    # The rate is fixed in the original.
    logits = dropout(outputs["pooled_output"], 0.1) @ weights["output_weights"].T
    outputs["logits"] = logits + weights["output_bias"]
    if "label_ids" in batch:
        outputs["losses"] = cross_entropy(outputs["logits"], batch["label_ids"])
        outputs["loss"] = np.mean(outputs["losses"])
    return outputs


def cross_entropy(logits, labels):
    """-log softmax(logits)[label]; labels lack the last axis of logits."""
    labels = np.asarray(labels)[..., None]
    return -np.take_along_axis(log_softmax(logits), labels, axis=-1)[..., 0]


def learning_rate(step, peak, num_train_steps, num_warmup_steps):
    """Rate of the update after `step` finished ones; the decay runs from step 0."""
    if step < num_warmup_steps:
        return peak * step / num_warmup_steps
    return peak * (1 - min(step, num_train_steps) / num_train_steps)


def clip(gradients, limit=1.0):
    """Gradients scaled to a common norm of at most `limit`, and the norm before."""
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients.values()))
    return {name: g / max(norm / limit, 1.0) for name, g in gradients.items()}, norm


class Adam:
    """Adam with decoupled decay; the bias correction is that of Kingma and Ba."""

    def __init__(self, weights, weight_decay=0.01, bias_correction=False):
        self.weights = {k: np.array(w, np.float64) for k, w in weights.items()}
        self.m = {k: np.zeros_like(w) for k, w in self.weights.items()}
        self.v = {k: np.zeros_like(w) for k, w in self.weights.items()}
        self.weight_decay, self.bias_correction = weight_decay, bias_correction
        self.steps = 0

    def apply(self, gradients, rate):
        self.steps += 1
        for name, g in gradients.items():
            m = self.m[name] = 0.9 * self.m[name] + 0.1 * g
            v = self.v[name] = 0.999 * self.v[name] + 0.001 * np.square(g)
            if self.bias_correction:
                m, v = m / (1 - 0.9**self.steps), v / (1 - 0.999**self.steps)
            update = m / (np.sqrt(v) + 1e-6)
            if not re.search("LayerNorm|layer_norm|bias", name):
                update = update + self.weight_decay * self.weights[name]
            self.weights[name] = self.weights[name] - rate * update
