"""One version of a model, loaded and warm."""

import contextlib
import os

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of text signatures
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from server import errors, examples, messages, signatures

DEFAULT_SIGNATURE = "serving_default"
_WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
_MAX_WARM_UP_REQUESTS = 1000  # TensorFlow Serving's limit


class Version:
    """A SavedModel that answers.

    Args:
        model_name: str.
        number: int.
        path: str.
    Attributes:
        signatures: dict of name → signatures.Signature.
        num_users: int, requests under way.
        num_warm_up_requests: int, that were replayed.
    Raises:
        ValueError: it cannot be loaded, or fails a request of its warm-up file.
    """

    def __init__(self, model_name, number, path):
        self.model_name, self.number, self.path = model_name, number, path
        self.num_users = 0
        try:
            definitions = _definitions(path)
            # The functions need the object that they are of.
            self._loaded = tf.saved_model.load(path)
            self.signatures = {
                name: signatures.Signature(name, definitions[name], function)
                for name, function in self._loaded.signatures.items()
            }
        except Exception as error:  # of any kind, if files are damaged
            raise ValueError(
                f"{path} cannot be loaded as a SavedModel: {error}"
            ) from error
        if not self.signatures:
            raise ValueError(f"the SavedModel {path} has no signatures to serve")
        self.num_warm_up_requests = self._warm_up()

    def signature(self, name, method=signatures.PREDICT):
        """A signature for a method.

        Args:
            name: str, "" for the default one.
            method: str, one of those in signatures.py. Any signature may predict.
        Raises:
            errors.RequestError: there is none, or it is for another method.
        """
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise errors.invalid(
                f"model {self.model_name} has no signature {errors.quoted(name)}; it "
                f"has {', '.join(self.signatures)}"
            )
        found = self.signatures[name]
        if method not in (signatures.PREDICT, found.definition.method_name):
            raise errors.invalid(
                f"signature {name} is for {found.definition.method_name}, not {method}"
            )
        return found

    @contextlib.contextmanager
    def in_use(self):
        """While a request is under way, the version is not unloaded."""
        self.num_users += 1
        try:
            yield
        finally:
            self.num_users -= 1

    def _warm_up(self):
        """Replays the requests that the SavedModel brings; returns how many."""
        file, count = os.path.join(self.path, _WARM_UP_FILE), 0
        if not os.path.exists(file):
            return count
        try:
            for record in tf.data.TFRecordDataset(file).take(_MAX_WARM_UP_REQUESTS):
                log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
                for signature, inputs in self._logged(log):
                    signature.check(inputs)
                    signature.run(inputs)
                count += 1
        except tf.errors.DataLossError:
            raise ValueError(f"{file} is damaged; export the model again") from None
        except Exception as error:  # of any kind, as above
            reason = errors.of_model(error) if count else error
            raise ValueError(
                f"{file}: request {count + 1} of the warm-up fails: {reason}"
            ) from error
        return count

    def _logged(self, log):
        """Yields (signature, inputs) of a PredictionLog."""
        kind = log.WhichOneof("log_type")
        if kind == "predict_log":
            request = log.predict_log.request
            signature = self.signature(request.model_spec.signature_name)
            yield signature, messages.inputs(request, signature)
            return
        if kind == "multi_inference_log":
            request = log.multi_inference_log.request
            names = [task.model_spec.signature_name for task in request.tasks]
        elif kind in ("classify_log", "regress_log"):
            request = getattr(log, kind).request
            names = [request.model_spec.signature_name]
        else:
            return  # A log of sessions, which are not served.
        for name in names:
            signature = self.signature(name)
            rows = examples.from_message(request.input, _MAX_WARM_UP_REQUESTS)
            yield signature, messages.example_inputs(rows, signature)


def _definitions(path):
    """dict of name → SignatureDef in the file of a SavedModel."""
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        saved_model = saved_model_pb2.SavedModel.FromString(file.read())
    graphs = saved_model.meta_graphs
    if len(graphs) != 1:
        raise ValueError(
            f"its saved_model.pb holds {len(graphs)} graphs instead of one; copy or "
            "export it again"
        )
    return dict(graphs[0].signature_def)
