"""A model that takes ids, as a file for other runtimes: LiteRT and ONNX Runtime.

Their int8 is dynamic-range: matrices are stored in 8 bits, and what they are multiplied
with is rounded to 8 bits as it comes, by its own range. It needs no data.
"""

import contextlib
import logging
import os
import warnings

import keras
import tensorflow as tf

from serving import saved_model

# Of graphs in ONNX: what the axes of the inputs are called that may have any size.
_AXES = {2: ("batch", "seq_length"), 3: ("batch", "choices", "seq_length")}


class IdsModel(keras.Model):
    """What of a server runs without TensorFlow's strings.

    Args:
        server: saved_model.TextServer.
    Call arguments:
        batch: dict with input_ids, input_mask and segment_ids, int32, of any size.
    Returns:
        dict of name → float32, see `numbers` of the server.
    """

    def __init__(self, server):
        super().__init__()
        self.model = server.model  # Keras looks for its weights.
        self._server = server
        self.built = True

    def call(self, batch, training=False):
        del training  # Never.
        return self._server.numbers(batch)

    def signature(self):
        """The argument of `call`, as `export` takes it."""
        specs = saved_model.ids_signature(self._server.RANK)
        return [{spec.name: spec for spec in specs}]


def write_litert(model, path, is_int8=False):
    """Writes an IdsModel as a .tflite file.

    Its inputs and outputs have the names of the model's. To give it other sizes than
    [1, 1], use its signature, or resize the inputs.

    Args:
        model: IdsModel.
        path: str, ends with .tflite.
        is_int8: bool.
    """
    with _quiet():
        model.export(
            path,
            format="litert",
            input_signature=model.signature(),
            verbose=False,
            optimizations=[tf.lite.Optimize.DEFAULT] if is_int8 else [],
        )


def write_litert_int8(model, path):
    """`write_litert` with 8 bits."""
    write_litert(model, path, is_int8=True)


def open_litert(path):
    """A .tflite file as a function of a dict of arrays, giving another."""
    with warnings.catch_warnings():
        # TensorFlow 2.21 still has it, and another package would have to be installed.
        warnings.filterwarnings("ignore", r"\s*Warning: tf\.lite\.Interpreter is dep")
        interpreter = tf.lite.Interpreter(model_path=path)
    run = interpreter.get_signature_runner()
    return lambda batch: run(**batch)


def write_onnx(model, path):
    """Writes an IdsModel as an .onnx file; as `write_litert`.

    Raises:
        ImportError: packages of requirements-formats.txt are missing.
    """
    import onnx

    with _quiet():
        model.export(
            path, format="onnx", input_signature=model.signature(), verbose=False
        )
    # The converter numbers the axes, as if all were different.
    proto = onnx.load(path)
    for value in proto.graph.input:
        sizes = value.type.tensor_type.shape.dim
        for size, name in zip(sizes, _AXES[len(sizes)], strict=True):
            size.dim_param = name
    onnx.save(proto, path)


def write_onnx_int8(model, path):
    """`write_onnx` with 8 bits, from the file of that, if it is beside this one.

    Args:
        model: IdsModel.
        path: str, that of the other with _int8 before .onnx.
    """
    from onnxruntime import quantization

    source = path.removesuffix("_int8.onnx") + ".onnx"
    is_there = os.path.exists(source)
    if not is_there:
        write_onnx(model, source)
    try:
        with _quiet():
            quantization.quantize_dynamic(
                source,
                path,
                per_channel=True,
                # With signed ones, sums overflow on CPUs that have AVX2 but no VNNI.
                weight_type=quantization.QuantType.QUInt8,
            )
    finally:
        if not is_there:
            os.remove(source)


def open_onnx(path):
    """An .onnx file as a function of a dict of arrays, giving another."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda batch: dict(zip(names, session.run(None, batch), strict=True))


@contextlib.contextmanager
def _quiet():
    """Keeps the lines of converters below errors off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # Keras asks whether NumPy has what tf2onnx needs.
            warnings.filterwarnings("ignore", "In the future `np.object`")
            yield
    finally:
        logging.disable(before)
