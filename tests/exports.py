"""Asks SavedModels in processes that cannot import anything of this repository."""

import collections
import json
import pathlib
import subprocess
import sys

from tensorflow.core.protobuf import saved_model_pb2

from modeling import checkpoint
from serving import saved_model
from tests import scripts

CLIENT = """
import json, sys
import tensorflow as tf
import tensorflow_text

path, requests = sys.argv[1:]
signatures = tf.saved_model.load(path).signatures


def plain(value):
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def example(texts):
    message = tf.train.Example()
    for name, text in texts.items():
        message.features.feature[name].bytes_list.value.append(text.encode())
    return message.SerializeToString()


answers = []
for name, inputs in json.load(open(requests)):
    if name in ("classify", "regress"):
        inputs = {"inputs": [example(texts) for texts in inputs]}
    dtype = tf.int32 if name in ("ids", "model_garden", "hugging_face") else tf.string
    inputs = {key: tf.constant(value, dtype) for key, value in inputs.items()}
    outputs = signatures[name](**inputs)
    answers.append({key: plain(v.numpy().tolist()) for key, v in outputs.items()})
assert not {"data", "modeling", "serving"} & set(sys.modules)
json.dump(answers, sys.stdout)
"""


def write_run(out, golden, model):
    """A folder with random weights that the scripts take for that of a run."""
    out.mkdir()
    weights = {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}
    checkpoint.write_tf1(str(out / "model.ckpt-1"), {**weights, "global_step": 1})
    return {
        "output_dir": out,
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "do_predict": True,
        "do_export": True,
    }


def check_narrow(folder, **flags):
    """Exports in bfloat16 too, which is compared with float32 by the exporter."""
    flags |= {"export_dir": folder / "narrow", "precision": "bfloat16"}
    shown = scripts.succeed("export_saved_model.py", **flags)
    assert "from the model in float32: largest difference" in shown


def write_vocab(folder, size):
    """Writes a vocabulary, "word0" and so on; returns its path, str."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [f"word{i}" for i in range(size - len(tokens))]
    path = folder / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n")
    return str(path)


def ask(path, requests, folder):
    """Sends requests, [(signature, inputs), ...], to an export in a clean process.

    Args:
        path: of the SavedModel.
        requests: inputs are dicts of lists, int32 for signatures of ids and otherwise
            string; or for "classify" and "regress" lists of the features of examples,
            dict of name → str.
        folder: path to write to.
    Returns:
        list of dict of name → values, lists; bytes become str.
    """
    file = folder / "requests.json"
    file.write_text(json.dumps(requests))
    result = subprocess.run(
        [sys.executable, "-I", "-c", CLIENT, str(path), str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def read(path):
    """The MetaGraphDef of a SavedModel."""
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((pathlib.Path(path) / "saved_model.pb").read_bytes())
    (graph,) = message.meta_graphs
    return graph


def count_ops(path):
    """Counter of the ops in the graph of a SavedModel and in its functions."""
    graph = read(path).graph_def
    nodes = list(graph.node)
    for function in graph.library.function:
        nodes += function.node_def
    ops = collections.Counter(node.op for node in nodes)
    for function in graph.library.function:
        del ops[function.signature.name]
    return ops


def signatures(server):
    """dict of name → function of the signatures of a server that was not saved."""
    functions = saved_model.signatures(server)
    return {name: f.get_concrete_function() for name, f in functions.items()}


def uncompared(server):
    """Names of the signatures whose numbers could be off and an exporter not see it."""
    good = signatures(server)

    def off(function):
        def changed(**inputs):
            outputs = function(**inputs)
            return {
                name: value + 1e-3 if value.dtype.is_floating else value
                for name, value in outputs.items()
            }

        return changed

    assert max(server.differences(good)) <= 1e-5
    return [
        name
        for name in good
        if not any(
            difference > 1e-5
            for difference in server.differences({**good, name: off(good[name])})
        )
    ]
