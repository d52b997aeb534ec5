"""The load test tells right answers from wrong ones."""

import json

import pytest

from benchmarks import serving_load
from tests import served


@pytest.fixture(scope="module")
def rows():
    return [
        serving_load.Row({"text": text}, {"echo": text, "size": len(text)})
        for text in ("", "a", "b" * 100)
    ]


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "toy"
    served.export_toy(folder / "1")
    return folder


TRAFFIC = serving_load.Traffic(num_clients=3, max_items=4, malformed=0.2)


def test_rows_are_what_the_model_gives(export):
    import random

    lines = ["some text", "more"]
    found = serving_load.make_rows(str(export / "1"), lines, 5, random.Random(0))
    for row in found:
        text = row.inputs["text"]
        assert row.outputs == {"echo": text, "size": len(text)}
        assert set(text.split()) <= {"some", "text", "more"}


def test_a_run_counts_what_is_wrong(export, rows):
    with served.serving({"m": export}) as server:
        found = serving_load.measure(server.rest_port, rows, TRAFFIC, 60, 1)
        assert (found["requests"], found["wrong answers"]) == (60, 0)
        assert 0 < found["malformed"] < 60
        wrong = [row._replace(outputs={"echo": "x", "size": 1}) for row in rows]
        found = serving_load.measure(server.rest_port, wrong, TRAFFIC, 60, 1)
        assert found["wrong answers"] == 60 - found["malformed"]


def test_which_answers_are_right():
    row = serving_load.Row({"text": "a"}, {"label": "b", "scores": [0.25, 100.0]})

    def is_right(**outputs):
        answer = json.loads(json.dumps({"predictions": [outputs]}))
        return serving_load.is_right(answer, [row])

    assert is_right(label="b", scores=[0.250009, 100.0009])
    assert not is_right(label="b", scores=[0.2501, 100.0])
    assert not is_right(label="b", scores=[0.25, 100.01])
    assert not is_right(label="b", scores=[0.25])
    assert not is_right(label="b", scores=[0.25, float("nan")])
    assert not is_right(label="c", scores=[0.25, 100.0])
    assert not is_right(label="b")
    assert not serving_load.is_right({"predictions": []}, [row])
