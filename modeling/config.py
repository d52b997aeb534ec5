"""The sizes of a BERT model: the released `bert_config.json`, read and checked.

Source: Devlin et al. 2018, section 3, and the files released with the paper.
"""

import dataclasses
import difflib
import json
import math
from typing import Any

# The activations a config may name. "gelu" is the tanh form, as in the original code;
# "gelu_exact" is the erf form that Hugging Face calls "gelu".
ACTIVATIONS = ("gelu", "gelu_exact", "relu", "tanh", "linear")
VISIBILITIES = ("bidirectional", "left_to_right")
POOLED_POSITIONS = ("first", "last")

# Keys that are left out of a file where they say what the original always does.
_OPTIONAL = {
    "layer_norm_eps": 1e-12,
    "visibility": "bidirectional",
    "pooled_position": "first",
}

# Keys that change the arithmetic of other models, and the only values that mean BERT.
_MEANS_BERT = {
    "model_type": ("bert", None),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
}


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and rates of one model.

    Args:
        vocab_size: int, rows of the word embedding table.
        hidden_size: int, width of embeddings, encoder and pooler.
        num_hidden_layers: int, encoder blocks.
        num_attention_heads: int, divides hidden_size.
        intermediate_size: int, inner width of the feed-forward block.
        hidden_act: one of `ACTIVATIONS`.
        hidden_dropout_prob: float in [0, 1), after embeddings and sub-layers.
        attention_probs_dropout_prob: float in [0, 1), after the attention softmax.
        max_position_embeddings: int, rows of the position table.
        type_vocab_size: int, rows of the segment table. (The original's default is 16;
            every released file says 2.)
        initializer_range: float, standard deviation of the truncated normal.
        layer_norm_eps: float, added to the variance. The original always uses 1e-12.
        visibility: one of `VISIBILITIES`: a position looks at all real tokens, or at
            itself and those before it (the left-to-right model of section 5.1).
        pooled_position: one of `POOLED_POSITIONS`: the pooler reads [CLS], or the last
            real token, as it must if the first sees nothing but itself.
        extra: keys of the file that BERT does not use, kept as they are.
    Raises:
        ValueError: names the key whose value cannot be used.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    visibility: str = "bidirectional"
    pooled_position: str = "first"
    extra: dict = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self):
        act = self.hidden_act or "linear"
        act = act.lower() if isinstance(act, str) else act
        object.__setattr__(self, "hidden_act", act)
        for name, choices in (
            ("hidden_act", ACTIVATIONS),
            ("visibility", VISIBILITIES),
            ("pooled_position", POOLED_POSITIONS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got "
                    f"{getattr(self, name)!r}"
                )
        if self.visibility == "left_to_right" and self.pooled_position == "first":
            raise ValueError(
                "pooled_position is first, but with visibility left_to_right the first "
                "token sees nothing else; set pooled_position to last"
            )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and not (type(value) is int and value > 0):
                raise ValueError(
                    f"{field.name} must be a positive whole number, got {value!r}"
                )
            if field.type is float and not isinstance(value, (int, float)):
                raise ValueError(f"{field.name} must be a number, got {value!r}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1, got {getattr(self, name)}"
                )
        for name in ("initializer_range", "layer_norm_eps"):
            if not 0 < getattr(self, name) < math.inf:  # so that NaN is refused too
                raise ValueError(
                    f"{name} must be above 0 and finite, got {getattr(self, name)}"
                )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "hidden_size must be a multiple of num_attention_heads, got "
                f"{self.hidden_size} and {self.num_attention_heads}; change one of them"
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "BertConfig":
        """Builds a config; keys that BERT does not use are kept in `extra`.

        Raises:
            ValueError: a value cannot be used, a key means another model, or a key
                looks like a misspelt one.
        """
        names = [f.name for f in dataclasses.fields(cls) if f.name != "extra"]
        known = {key: value for key, value in values.items() if key in names}
        extra = {key: value for key, value in values.items() if key not in names}
        if "vocab_size" not in known:
            raise ValueError("vocab_size is missing; it must be given")
        for key, value in extra.items():
            if value not in _MEANS_BERT.get(key, (value,)):
                raise ValueError(
                    f"{key} is {value!r}, which BERT does not have; expected "
                    f"{_MEANS_BERT[key][0]!r}"
                )
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.85)
            if near and near[0] not in known:
                raise ValueError(f"unknown key {key!r}; did you mean {near[0]!r}?")
        return cls(**known, extra=extra)

    @classmethod
    def from_json_file(cls, path: str) -> "BertConfig":
        """Reads a released `bert_config.json`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is no JSON object or holds a value that cannot be used.
        """
        with open(path, encoding="utf-8") as file:
            try:
                values = json.load(file)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path} is not a JSON file: {error}") from None
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold a JSON object, got {values!r:.40}")
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """The keys of the file, with what was kept in `extra`.

        Keys that the original's files lack are left out where they mean what it does.
        """
        values = dataclasses.asdict(self)
        values.update(values.pop("extra"))
        for name, default in _OPTIONAL.items():
            if values[name] == default:
                del values[name]
        return values

    def to_json_string(self) -> str:
        """JSON with two-space indent, sorted keys and one newline at the end."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"
