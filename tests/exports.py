"""Asks SavedModels in processes that cannot import anything of this repository."""

import json
import subprocess
import sys

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


answers = []
for name, inputs in json.load(open(requests)):
    dtype = tf.int32 if name == "ids" else tf.string
    inputs = {key: tf.constant(value, dtype) for key, value in inputs.items()}
    outputs = signatures[name](**inputs)
    answers.append({key: plain(v.numpy().tolist()) for key, v in outputs.items()})
assert not {"data", "modeling", "serving"} & set(sys.modules)
json.dump(answers, sys.stdout)
"""


def ask(path, requests, folder):
    """Sends requests, [(signature, inputs), ...], to an export in a clean process.

    Args:
        path: of the SavedModel.
        requests: inputs are dicts of lists; those of "ids" are int32, others string.
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
