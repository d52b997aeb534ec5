"""TensorFlow Serving's gRPC: PredictionService and ModelService."""

import asyncio
import contextlib
import logging as python_logging
import time

import grpc
from absl import logging
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from server import aside, errors, examples, inference, messages, metadata, signatures

_MAX_TASKS = 16  # of MultiInference


class _Calls:
    """Errors as status codes, and all calls counted.

    Args:
        service: inference.Inference.
        monitor: monitoring.Monitor.
    """

    def __init__(self, service, monitor):
        self._inference, self._monitor = service, monitor

    @contextlib.asynccontextmanager
    async def _call(self, method, context):
        started, code = time.perf_counter(), grpc.StatusCode.UNKNOWN
        try:
            yield
            code = grpc.StatusCode.OK
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            raise
        except errors.RequestError as error:
            code = error.code
            await context.abort(error.code, error.sentence)
        except Exception:
            code = grpc.StatusCode.INTERNAL
            logging.exception("%s failed", method)
            await context.abort(grpc.StatusCode.INTERNAL, "the server failed")
        finally:
            seconds = time.perf_counter() - started
            self._monitor.answered("grpc", method, code.name, seconds)


class PredictionService(_Calls, prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predict, Classify, Regress, MultiInference and GetModelMetadata."""

    async def Predict(self, request, context):
        async with self._call("predict", context):
            size = request.ByteSize()

            async def read(signature):
                return await aside.call(
                    messages.inputs, request, signature, num_bytes=size
                )

            answer = await self._inference.predict(_target(request.model_spec), read)
            return await aside.call(
                _predict_response,
                answer,
                request.output_filter,
                num_bytes=size,
                num_values=aside.size(answer.outputs),
            )

    async def Classify(self, request, context):
        async with self._call("classify", context):
            response = classification_pb2.ClassificationResponse()
            await self._classify(_target(request.model_spec), request.input, response)
            return response

    async def Regress(self, request, context):
        async with self._call("regress", context):
            response = regression_pb2.RegressionResponse()
            await self._regress(_target(request.model_spec), request.input, response)
            return response

    async def MultiInference(self, request, context):
        async with self._call("multi_inference", context):
            if not 0 < len(request.tasks) <= _MAX_TASKS:
                raise errors.invalid(f"there must be 1 to {_MAX_TASKS} tasks")
            response = inference_pb2.MultiInferenceResponse()
            for task in request.tasks:
                result, target = response.results.add(), _target(task.model_spec)
                if task.method_name == signatures.CLASSIFY:
                    fill, part = self._classify, result.classification_result
                elif task.method_name == signatures.REGRESS:
                    fill, part = self._regress, result.regression_result
                else:
                    raise errors.invalid(
                        f"method_name must be {signatures.CLASSIFY} or "
                        f"{signatures.REGRESS}"
                    )
                await fill(target, request.input, _Result(result.model_spec, part))
            return response

    async def GetModelMetadata(self, request, context):
        async with self._call("metadata", context):
            target = _target(request.model_spec)
            version = self._inference.repository.find(target.model, target.version)
            return metadata.response(version, request.metadata_field)

    async def _classify(self, target, message, response):
        run, add = self._inference.classify, _add_classes
        await self._run_examples(run, target, message, add, response)

    async def _regress(self, target, message, response):
        run, add = self._inference.regress, _add_numbers
        await self._run_examples(run, target, message, add, response)

    async def _run_examples(self, run, target, message, add, response):
        size = message.ByteSize()
        rows = await aside.call(
            examples.from_message, message, self._inference.max_items, num_bytes=size
        )
        answer, found = await run(target, rows, size)
        await aside.call(
            add, response.result, found, num_values=aside.size(answer.outputs)
        )
        _fill(response.model_spec, answer)


class _Result:
    """The result of a task, with the names of a whole response."""

    def __init__(self, model_spec, result):
        self.model_spec, self.result = model_spec, result


class ModelService(_Calls, model_service_pb2_grpc.ModelServiceServicer):
    """GetModelStatus."""

    async def GetModelStatus(self, request, context):
        async with self._call("status", context):
            target = _target(request.model_spec)
            return metadata.status(
                self._inference.repository, target.model, target.version
            )


def _predict_response(answer, names):
    """A PredictResponse of the outputs of these names, or of all if there are none."""
    wanted = set(names) or set(answer.outputs)
    if unknown := wanted - set(answer.outputs):
        raise errors.invalid(
            f"signature {answer.signature.name} has no output "
            f"{errors.quoted(min(unknown))}"
        )
    response = predict_pb2.PredictResponse()
    _fill(response.model_spec, answer)
    for name in wanted:
        tensor = messages.to_tensor(
            answer.outputs[name], answer.signature.outputs[name].dtype
        )
        response.outputs[name].CopyFrom(tensor)
    return response


def _add_classes(result, found):
    """Adds what `examples.classes` gives to a ClassificationResult."""
    for labels in found:
        classes = result.classifications.add().classes
        for label, score in labels:
            classes.add(label=label, score=score)


def _add_numbers(result, found):
    """Adds what `examples.numbers` gives to a RegressionResult."""
    for value in found:
        result.regressions.add(value=value)


def _target(spec):
    """The inference.Target of a ModelSpec."""
    if spec.WhichOneof("version_choice") == "version_label":
        raise errors.invalid("versions have no labels here; give a number or none")
    number = spec.version.value if spec.HasField("version") else None
    return inference.Target(spec.name, number, spec.signature_name)


def _fill(spec, answer):
    """Says in a ModelSpec what answered."""
    spec.name, spec.version.value = answer.version.model_name, answer.version.number
    spec.signature_name = answer.signature.name


def add_to(grpc_server, service, monitor):
    """Adds both services to a grpc.aio server.

    Args:
        grpc_server: grpc.aio.Server.
        service: inference.Inference.
        monitor: monitoring.Monitor.
    """
    # A traceback for each message that is none: `_Calls` logs what matters.
    python_logging.getLogger("grpc._cython.cygrpc").setLevel(python_logging.CRITICAL)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(service, monitor), grpc_server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(
        ModelService(service, monitor), grpc_server
    )
