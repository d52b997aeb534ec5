"""config.json: what is taken over, what is refused, what it says about labels."""

import json

import pytest

from modeling import config, huggingface_config


@pytest.fixture
def changed(golden, tmp_path):
    """Function that writes a config.json with some keys changed (None: removed)."""

    def write(**changes):
        source = golden / "hf_tiny" / "pretraining_gelu" / "config.json"
        values = huggingface_config.read_json(source)
        values |= changes
        values = {key: value for key, value in values.items() if value is not None}
        (tmp_path / "config.json").write_text(json.dumps(values))
        return tmp_path / "config.json"

    return write


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        # Formulas compared with those of transformers 5.24.
        ("gelu", "gelu_exact"),
        ("gelu_python", "gelu_exact"),
        ("gelu_new", "gelu"),
        ("gelu_pytorch_tanh", "gelu"),
        ("gelu_fast", "gelu"),
        ("relu", "relu"),
        ("tanh", "tanh"),
        ("linear", "linear"),
    ],
)
def test_activations(changed, theirs, ours):
    assert huggingface_config.read_config(changed(hidden_act=theirs)).hidden_act == ours


def test_every_activation_of_ours_can_be_written_and_read(changed):
    for act in config.ACTIVATIONS:
        ours = config.BertConfig(vocab_size=9, hidden_act=act)
        head = huggingface_config.Head("BertModel")
        values = huggingface_config.config_values(ours, head)
        assert huggingface_config.read_config(changed(**values)) == ours


def test_missing_keys_get_transformers_defaults(tmp_path):
    # The first configs of Hugging Face had no model_type, and no layer_norm_eps.
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 8, "num_attention_heads": 2}')
    expected = config.BertConfig(
        vocab_size=30522,
        hidden_size=8,
        num_attention_heads=2,
        hidden_act="gelu_exact",
        type_vocab_size=2,
        layer_norm_eps=1e-12,
    )
    assert huggingface_config.read_config(path) == expected


def test_epsilon_and_segments_are_honoured(golden, changed):
    folder = golden / "hf_tiny" / "pretraining_relu"
    assert huggingface_config.read_config(folder / "config.json").layer_norm_eps == 1e-5
    assert (
        huggingface_config.read_config(changed(type_vocab_size=5)).type_vocab_size == 5
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "roberta"),
        ("model_type", "distilbert"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("embedding_size", 16),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"bits": 4}),
        ("hidden_act", "silu"),
        ("hidden_act", "quick_gelu"),
        ("num_attention_heads", 5),
        ("hidden_size", "32"),
    ],
)
def test_what_bert_does_not_have_is_refused_by_name(changed, key, value):
    with pytest.raises(ValueError, match=rf"config\.json: .*{key}"):
        huggingface_config.read_config(changed(**{key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("position_embedding_type", "absolute"),
        ("embedding_size", 32),
        ("pruned_heads", {}),
        ("classifier_dropout", 0.3),
    ],
)
def test_what_means_bert_is_accepted(changed, key, value):
    assert huggingface_config.read_config(changed(**{key: value})).hidden_size == 32


def test_old_config_of_another_model_is_refused(changed):
    path = changed(model_type=None, architectures=["RobertaForMaskedLM"])
    with pytest.raises(
        ValueError, match="the model is a RobertaForMaskedLM, not a BER"
    ):
        huggingface_config.read_config(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": 5}, "architectures must be a list of names, got 5"),
        ({"architectures": [5]}, "architectures must be a list of names"),
        ({"hidden_act": ["gelu"]}, "hidden_act .* is not supported"),
    ],
)
def test_values_of_other_kinds_are_refused(changed, changes, message):
    with pytest.raises(ValueError, match=message):
        huggingface_config.read_config(changed(**changes))


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000])
def test_config_that_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(
        ValueError, match=r"config\.json (is not a JSON|must hold a JS)"
    ):
        huggingface_config.read_config(tmp_path / "config.json")


def test_labels(golden, changed):
    folder = golden / "hf_tiny"
    read_head, name = huggingface_config.read_head, "BertForSequenceClassification"
    named = read_head(folder / "classification" / "config.json")
    labels = ("contradiction", "entailment", "neutral")
    assert named == huggingface_config.Head(name, labels)
    numbered = read_head(folder / "regression" / "config.json")
    assert numbered == huggingface_config.Head(name, None, "regression")
    many = {str(k): f"x{k}" for k in (*range(1, 12), 0)}
    expected = tuple(f"x{k}" for k in range(12))
    assert read_head(changed(id2label=many)).labels == expected
    with pytest.raises(ValueError, match="id2label must number the labels from 0"):
        read_head(changed(id2label={"1": "a"}))


@pytest.mark.parametrize("num_labels", [1, 3])
@pytest.mark.parametrize(
    "problem_type",
    ["regression", "single_label_classification", "multi_label_classification"],
)
def test_problem_type_is_written_and_read(changed, problem_type, num_labels):
    head = huggingface_config.Head(
        "BertForSequenceClassification", problem_type=problem_type
    )
    ours = config.BertConfig(vocab_size=9)
    values = huggingface_config.config_values(ours, head, num_labels)
    assert values["problem_type"] == problem_type
    assert huggingface_config.read_head(changed(**values)) == head


def test_unknown_problem_type_is_refused(changed):
    with pytest.raises(ValueError, match="problem_type must be one of .* got 'ranking"):
        huggingface_config.read_head(changed(problem_type="ranking"))


def test_a_model_that_pools_its_last_token_cannot_be_written():
    causal = config.BertConfig(9, visibility="left_to_right", pooled_position="last")
    head = huggingface_config.Head("BertForPreTraining", None, None)
    with pytest.raises(ValueError, match="pools its last token, which Hugging Face"):
        huggingface_config.config_values(causal, head)
