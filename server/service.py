"""Starts and stops everything: models, HTTP, gRPC."""

import asyncio
import contextlib
import dataclasses
import socket

import grpc
from absl import logging

from server import batching, inference, monitoring, repository, rest, rpc, signatures

_SECONDS_TO_REFUSE = 0.5  # for what the grace is too short for


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to serve; the flags of serve.py of the same names say what each is.

    Attributes:
        models: dict of name → folder.
    """

    models: dict
    host: str
    rest_port: int
    grpc_port: int
    max_batch_size: int
    batch_timeout_ms: float
    num_threads: int
    max_queue: int
    max_items: int
    max_text_bytes: int
    max_body_bytes: int
    max_connections: int
    timeout_s: float
    client_timeout_s: float
    grace_s: float
    poll_s: float


class Service:
    """Models behind an HTTP and a gRPC server, in one event loop.

    Args:
        settings: Settings.
    Attributes:
        rest_port, grpc_port: int, once it is started.
    Raises:
        ValueError, OSError: a model cannot be loaded.
    """

    def __init__(self, settings):
        self._settings, self._monitor = settings, monitoring.Monitor()
        self._repository = repository.Repository(settings.models)
        self._batcher = batching.Batcher(
            settings.num_threads,
            settings.max_batch_size,
            settings.batch_timeout_ms / 1000,
            settings.max_queue,
            self._monitor,
        )
        limits = signatures.Limits(
            settings.max_items, settings.max_text_bytes, settings.max_body_bytes
        )
        self._inference = inference.Inference(
            self._repository, self._batcher, limits, settings.timeout_s
        )
        self._http = rest.Server(
            self._inference,
            self._monitor,
            settings.max_body_bytes,
            settings.client_timeout_s,
            settings.max_connections,
        )

    async def start(self):
        """Serves from now on.

        Raises:
            ValueError: a port is taken, or there is no such address.
        """
        settings = self._settings
        with _address_explained(settings.host, settings.rest_port, "rest"):
            bound = _bind(settings.host, settings.rest_port)
        try:
            await self._start_grpc()
        except ValueError:
            bound.close()
            raise
        self._http.listen(bound)
        self.rest_port = bound.getsockname()[1]
        logging.info("REST at http://%s", _address(settings.host, self.rest_port))
        logging.info("gRPC at %s", _address(settings.host, self.grpc_port))
        self._watch = None
        if settings.poll_s:
            self._watch = asyncio.create_task(self._repository.watch(settings.poll_s))

    async def _start_grpc(self):
        host, port = self._settings.host, self._settings.grpc_port
        options = [
            ("grpc.max_receive_message_length", self._settings.max_body_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # A second server must not share the port.
        ]
        self._grpc = grpc.aio.server(options=options)
        rpc.add_to(self._grpc, self._inference, self._monitor)
        with _address_explained(host, port, "grpc"):
            # First by Python: gRPC does not say what is wrong with an address.
            _bind(host, port).close()
            self.grpc_port = self._grpc.add_insecure_port(_address(host, port))
        await self._grpc.start()

    async def stop(self):
        """Accepts nothing more, and answers what was accepted.

        Who waits for a model when the grace is over is told that the server stops.

        Returns:
            bool, whether all of it is answered and no model runs or loads any more.
        """
        grace_s = self._settings.grace_s
        logging.info("stopping, within %g seconds", grace_s)
        if self._watch:
            self._watch.cancel()
        loop = asyncio.get_running_loop()
        refuse = loop.call_later(grace_s, self._batcher.close)
        most_s = grace_s + _SECONDS_TO_REFUSE
        is_done, _ = await asyncio.gather(
            self._http.stop(most_s), self._grpc.stop(most_s)
        )
        refuse.cancel()
        is_done &= self._batcher.close()
        if not is_done:
            logging.warning("not all was answered in time; raise --grace_s")
        logging.info("answers by code: %s", self._monitor.summary())
        return is_done and not self._repository.is_loading


def _bind(host, port):
    """A socket that listens."""
    family = socket.AF_INET6 if _is_ipv6(host) else socket.AF_INET
    return socket.create_server((host, port), family=family)


@contextlib.contextmanager
def _address_explained(host, port, protocol):
    """An address that cannot be used becomes one sentence."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"cannot listen on {_address(host, port)}: {reason.partition(' (')[0]}; "
            f"choose another --host or --{protocol}_port (0 for any that is free)"
        ) from error


def _address(host, port):
    return f"[{host}]:{port}" if _is_ipv6(host) else f"{host}:{port}"


def _is_ipv6(host):
    with contextlib.suppress(OSError):
        return bool(socket.inet_pton(socket.AF_INET6, host))
    return False
