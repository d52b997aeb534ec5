"""What REST and gRPC share: from a model's name to the outputs."""

import asyncio
import dataclasses

from server import aside, errors, examples, messages, signatures, versions


@dataclasses.dataclass(frozen=True)
class Target:
    """What a request asks for.

    Attributes:
        model: str.
        version: int, None for the one that is served.
        signature: str, "" for the default one.
    """

    model: str
    version: int | None = None
    signature: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a model gave.

    Attributes:
        version: versions.Version.
        signature: signatures.Signature.
        outputs: dict of name → np.ndarray.
    """

    version: versions.Version
    signature: signatures.Signature
    outputs: dict


class Inference:
    """Answers requests of any protocol.

    Args:
        repository: repository.Repository.
        batcher: batching.Batcher.
        limits: signatures.Limits, of a request.
        timeout_s: float, from a request that has come, JSON or message, to the outputs.
    """

    def __init__(self, repository, batcher, limits, timeout_s):
        self.repository, self._limits = repository, limits
        self.max_items = limits.max_items
        self._batcher, self._timeout_s = batcher, timeout_s

    async def predict(self, target, read):
        """Runs a signature on the inputs of a request.

        Args:
            target: Target.
            read: coroutine function of the signatures.Signature, gives the inputs.
        Returns:
            Answer.
        Raises:
            errors.RequestError: the request is wrong, or there is no answer in time.
        """
        return await self._run(target, signatures.PREDICT, read)

    async def classify(self, target, rows, num_bytes):
        """Classes of each example.

        Args:
            target: Target.
            rows: list of tf.train.Example.
            num_bytes: int, of the request.
        Returns:
            (Answer, list of lists of (str, float)).
        Raises:
            errors.RequestError: as `predict`.
        """
        return await self._run_examples(
            target, signatures.CLASSIFY, rows, num_bytes, examples.classes
        )

    async def regress(self, target, rows, num_bytes):
        """(Answer, list of float), a number for each example; else as `classify`."""
        return await self._run_examples(
            target, signatures.REGRESS, rows, num_bytes, examples.numbers
        )

    async def _run_examples(self, target, method, rows, num_bytes, give):
        async def read(signature):
            return await aside.call(
                messages.example_inputs, rows, signature, num_bytes=num_bytes
            )

        answer = await self._run(target, method, read)
        outputs = answer.outputs
        return answer, await aside.call(
            give, outputs, len(rows), num_values=aside.size(outputs)
        )

    async def _run(self, target, method, read):
        version = self.repository.find(target.model, target.version)
        signature = version.signature(target.signature, method)
        with version.in_use():
            try:
                async with asyncio.timeout(self._timeout_s):
                    inputs = await read(signature)
                    num_items = signature.check(inputs, self._limits)
                    outputs = await self._batcher.run(signature, inputs, num_items)
            except TimeoutError:
                raise errors.too_slow(self._timeout_s) from None
        return Answer(version, signature, outputs)
