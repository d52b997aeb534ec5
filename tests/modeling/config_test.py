"""Reading, writing and refusing configs."""

import dataclasses
import json

import pytest

from modeling import config as config_lib
from tests import small_models

# As the released Chinese and multilingual models have it.
CHINESE = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 21128,
}


def test_released_files_round_trip(golden, tmp_path):
    for text in (
        json.dumps(CHINESE, indent=2, sort_keys=True) + "\n",
        (golden / "tiny_tf1" / "bert_config.json").read_text(),
    ):
        path = tmp_path / "bert_config.json"
        path.write_text(text, "utf-8")
        config = config_lib.BertConfig.from_json_file(path)
        assert json.loads(config.to_json_string()) == json.loads(text)
        assert config_lib.BertConfig.from_dict(config.to_dict()) == config
    config = config_lib.BertConfig.from_dict(CHINESE)
    assert config.vocab_size == 21128
    assert (
        config.to_json_string() == json.dumps(CHINESE, indent=2, sort_keys=True) + "\n"
    )


def test_a_left_to_right_model_round_trips():
    values = CHINESE | {"visibility": "left_to_right", "pooled_position": "last"}
    config = config_lib.BertConfig.from_dict(values)
    assert config.to_dict() == values
    assert config != config_lib.BertConfig.from_dict(CHINESE)


def test_defaults_are_those_of_the_original():
    config = config_lib.BertConfig(vocab_size=100)
    assert dataclasses.asdict(config) == {
        "vocab_size": 100,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 16,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "visibility": "bidirectional",
        "pooled_position": "first",
        "extra": {},
    }


@pytest.mark.parametrize(
    ("act", "expected"),
    [("GELU", "gelu"), ("Relu", "relu"), ("", "linear"), (None, "linear")],
)
def test_spellings_of_activations(act, expected):
    assert small_models.config(hidden_act=act).hidden_act == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 768, "num_attention_heads": 7},
         "hidden_size must be a multiple of num_attention_heads, got 768 and 7"),
        ({"hidden_act": 5}, "hidden_act must be one of gelu, .* got 5"),
        ({"hidden_act": ["gelu"]}, "hidden_act must be one of gelu, .* got .'gelu'"),
        ({"layer_norm_eps": float("inf")}, "layer_norm_eps must be above 0 and finite"),
        ({"hidden_act": "swish"}, "hidden_act must be one of gelu, .* got 'swish'"),
        ({"vocab_size": 0}, "vocab_size must be a positive whole number, got 0"),
        ({"vocab_size": None}, "vocab_size must be a positive whole number, got None"),
        ({"num_hidden_layers": -1}, "num_hidden_layers must be .* got -1"),
        ({"num_hidden_layers": 2.0}, r"num_hidden_layers must be .* got 2\.0"),
        ({"intermediate_size": "3072"}, "intermediate_size must be .* got '3072'"),
        ({"type_vocab_size": True}, "type_vocab_size must be .* got True"),
        ({"hidden_dropout_prob": 1.0}, r"hidden_dropout_prob must be .* got 1\.0"),
        ({"attention_probs_dropout_prob": -0.1}, "attention_probs_dropout_pr"),
        ({"hidden_dropout_prob": "0.1"}, "hidden_dropout_prob must be a number"),
        ({"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob must be"),
        ({"initializer_range": 0}, "initializer_range must be above 0 and .*, got 0"),
        ({"layer_norm_eps": -1e-12}, "layer_norm_eps must be above 0"),
        ({"visibility": "causal"}, "visibility must be one of bidi.*, got 'causal'"),
        ({"pooled_position": 3}, "pooled_position must be one of first, last, got 3"),
        ({"visibility": "left_to_right"}, "the first token sees nothing else; set"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        small_models.config(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hiden_size": 768}, "unknown key 'hiden_size'; did you mean 'hidden_size'"),
        (
            {"model_type": "roberta"},
            "model_type is 'roberta', which BERT does not have",
        ),
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type is 'rel",
        ),
        ({"is_decoder": True}, "is_decoder is True"),
    ],
)
def test_keys_that_do_not_belong_to_bert_are_named(changes, message):
    values = {**CHINESE, **changes}
    if "hiden_size" in changes:
        del values["hidden_size"]
    with pytest.raises(ValueError, match=message):
        config_lib.BertConfig.from_dict(values)


def test_the_vocabulary_has_no_default():
    values = {key: value for key, value in CHINESE.items() if key != "vocab_size"}
    with pytest.raises(ValueError, match="vocab_size is missing"):
        config_lib.BertConfig.from_dict(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bert_config.json is not a JSON file"),
        ('{"vocab_size": 1', "bert_config.json is not a JSON file"),
        ("[1]", "bert_config.json must hold a JSON object"),
        ('{"vocab_size": -1}', "bert_config.json: vocab_size must be"),
        (b"\xff\xfe{", "bert_config.json is not a JSON file"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, text, message):
    path = tmp_path / "bert_config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as caught:
        config_lib.BertConfig.from_json_file(path)
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="bert_config.json"):
        config_lib.BertConfig.from_json_file(tmp_path / "bert_config.json")
