"""What is counted, for Prometheus and for the log."""

import collections

import prometheus_client
from absl import logging


class Monitor:
    """Counts of one server, which share nothing with those of another.

    Attributes:
        batch_items: histogram, items of each run of a model.
        waiting: gauge, requests in the queue.
    """

    def __init__(self):
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        self._requests = prometheus_client.Counter(
            "serving_requests",
            "Requests that were answered.",
            ["protocol", "method", "code"],
            registry=self._registry,
        )
        self._seconds = prometheus_client.Histogram(
            "serving_request_seconds",
            "From the whole request to its answer.",
            ["protocol", "method"],
            registry=self._registry,
        )
        self.batch_items = prometheus_client.Histogram(
            "serving_batch_items",
            "Items that a model ran at once.",
            buckets=[2**power for power in range(11)],
            registry=self._registry,
        )
        self.waiting = prometheus_client.Gauge(
            "serving_waiting_requests",
            "Requests that wait for a model.",
            registry=self._registry,
        )
        self._codes = collections.Counter()

    def answered(self, protocol, method, code, seconds):
        """Counts a request.

        Args:
            protocol: "rest" or "grpc".
            method: str, such as "predict".
            code: str, the name of a grpc.StatusCode or an HTTP status.
            seconds: float.
        """
        self._requests.labels(protocol, method, code).inc()
        self._seconds.labels(protocol, method).observe(seconds)
        if code not in self._codes and code not in ("200", "OK"):
            logging.info("first answer %s: %s by %s", code, method, protocol)
        self._codes[code] += 1

    def text(self):
        """bytes, in Prometheus's format."""
        return prometheus_client.generate_latest(self._registry)

    def summary(self):
        """str, how many answers of each code."""
        counts = ", ".join(f"{code} {n}" for code, n in self._codes.most_common())
        return counts or "none"
