"""One signature of a SavedModel: what it takes, what it gives, running it."""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from server import errors

PREDICT, CLASSIFY, REGRESS = (
    f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress")
)


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a request may have at most; the flags of serve.py say what each is."""

    max_items: int
    max_text_bytes: int
    max_body_bytes: int


class Signature:
    """A function of arrays by name.

    Args:
        name: str.
        definition: tensorflow SignatureDef, as in the SavedModel.
        function: of tensors by name, gives a dict of tensors.
    Attributes:
        inputs, outputs: dict of name → tf.TensorSpec.
        is_joinable: bool, whether requests may run as one, see `_can_join`.
    """

    def __init__(self, name, definition, function):
        self.name, self.definition = name, definition
        self.inputs = _specs(definition.inputs)
        self.outputs = _specs(definition.outputs)
        self.is_joinable = self._can_join()
        self._function = function

    def _can_join(self):
        """Whether each row of the outputs depends on the same row of the inputs only.

        As far as shapes tell: the first axis of all is free, and the other axes of the
        outputs are fixed, or may have their size from an input's. Where only the texts
        of a batch can decide on the size, joined requests would pad one another.
        """
        specs = [*self.inputs.values(), *self.outputs.values()]
        if any(spec.shape.rank in (None, 0) or spec.shape[0] for spec in specs):
            return False
        is_fixed = all(s.shape[1:].is_fully_defined() for s in self.outputs.values())
        are_flat = all(spec.shape.rank == 1 for spec in self.inputs.values())
        return is_fixed or not are_flat

    def check(self, inputs, limits=None):
        """Compares a request with the signature.

        Args:
            inputs: dict of name → np.ndarray, the type of each as in the signature.
            limits: Limits, or None for none.
        Returns:
            int, the number of rows: the longest first axis.
        Raises:
            errors.RequestError: a name is missing or unknown, a shape does not fit,
                there is nothing, or too much.
        """
        self.check_names(inputs)
        for name, spec in self.inputs.items():
            shape = list(inputs[name].shape)
            if not spec.shape.is_compatible_with(shape):
                raise errors.invalid(
                    f"input {name} must have shape {_shown(spec.shape)}, got {shape}"
                )
            if shape and not shape[0]:
                raise errors.invalid(f"input {name} is empty; send at least one item")
            if limits:
                _check_limits(name, inputs[name], limits)
        return max((len(array) for array in inputs.values() if array.ndim), default=1)

    def check_names(self, names):
        """Raises an errors.RequestError if inputs are missing or unknown."""
        if set(names) != set(self.inputs):
            raise errors.invalid(
                f"signature {self.name} takes {', '.join(self.inputs) or 'nothing'}; "
                f"got {', '.join(map(errors.quoted, sorted(names)[:10])) or 'nothing'}"
            )

    def run(self, inputs):
        """Runs the model in this thread.

        Args:
            inputs: dict of name → np.ndarray that `check` has seen.
        Returns:
            dict of name → np.ndarray; strings are objects, bytes.
        """
        tensors = {
            name: tf.constant(inputs[name], spec.dtype)
            for name, spec in self.inputs.items()
        }
        outputs = self._function(**tensors)
        return {name: _array(outputs[name]) for name in self.outputs}

    def __str__(self):
        return f"{self.name}({', '.join(self.inputs)})"


def _check_limits(name, array, limits):
    """Refuses what a small request could ask of a model: too much memory, or time."""
    is_text, items = array.dtype == object, len(array) if array.ndim else 1
    if is_text:
        items = array.size
    elif array.dtype in (np.int32, np.int64):  # ids, a sequence in every row of rows
        items = max(items, math.prod(array.shape[:-1]))
    errors.check_count(items, limits.max_items)
    if not is_text:
        return
    longest = max(map(len, array.flat), default=0)  # choices may be none
    if longest > limits.max_text_bytes:
        raise errors.invalid(
            f"a text of input {name} has {longest} bytes, at most "
            f"{limits.max_text_bytes} are allowed; send shorter parts of it"
        )
    # Models pad all texts of a request to the longest.
    if array.size * longest > limits.max_body_bytes:
        raise errors.invalid(
            f"the {array.size} texts of input {name}, padded to the longest of "
            f"{longest} bytes, are too much; send the longest by themselves"
        )


def _specs(infos):
    """dict of name → tf.TensorSpec, by name, of a map of TensorInfo."""
    return {
        name: tf.TensorSpec(
            tf.TensorShape(infos[name].tensor_shape), tf.as_dtype(infos[name].dtype)
        )
        for name in sorted(infos)
    }


def _shown(shape):
    if shape.rank is None:
        return "of any rank"
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"


def _array(tensor):
    # A scalar string comes as bytes, from which NumPy would cut zero bytes.
    return np.asarray(tensor.numpy(), object if tensor.dtype == tf.string else None)
