"""Golden rows and small files of questions, for the tests of SQuAD."""

import gzip
import json


def golden_rows(path):
    """The rows of a .jsonl or .jsonl.gz file."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def golden_input(golden, version_2):
    """The file of questions that the golden rows were made from."""
    return golden / f"squad_input_v{2 if version_2 else 1}.json"


def question(qas_id, *answers, **more):
    """An entry of "qas"; answers are (text, answer_start)."""
    return {
        "id": qas_id,
        "question": f"what is {qas_id}?",
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
        **more,
    }


def write(path, *paragraphs):
    """Writes a file of paragraphs (context, [question, ...]); returns its path."""
    entries = [{"context": context, "qas": qas} for context, qas in paragraphs]
    path.write_text(json.dumps({"data": [{"paragraphs": entries}]}), "utf-8")
    return path
