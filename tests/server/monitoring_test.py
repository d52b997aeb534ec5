"""Counts in Prometheus's format and for the log."""

from prometheus_client import parser

from server import monitoring


def samples(monitor):
    families = parser.text_string_to_metric_families(monitor.text().decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_counts():
    monitor, other = monitoring.Monitor(), monitoring.Monitor()
    assert monitor.summary() == "none"
    for code in ("OK", "OK", "NOT_FOUND"):
        monitor.answered("grpc", "predict", code, 0.25)
    monitor.batch_items.observe(5)
    monitor.waiting.set(3)
    assert monitor.summary() == "OK 2, NOT_FOUND 1"
    found = samples(monitor)
    assert found["serving_requests_total", "OK", "grpc", "predict"] == 2
    assert found["serving_request_seconds_sum", "grpc", "predict"] == 0.75
    assert found["serving_batch_items_sum",] == 5
    assert found["serving_waiting_requests",] == 3
    assert found["process_resident_memory_bytes",] > 0
    assert other.summary() == "none"
    assert ("serving_requests_total", "OK", "grpc", "predict") not in samples(other)
