"""What the benchmarks of fine-tuning share: runs, their times, tables of scores."""

import resource
import statistics


def cpu_seconds() -> float:
    """What the processes that this one started, and that have ended, have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def find(rows: list[dict], settings: dict) -> dict | None:
    """The first row that holds all the settings, if there is one."""
    for row in rows:
        if settings.items() <= row.items():
            return row
    return None


def markdown(rows: list[dict]) -> str:
    """Mean and sample standard deviation of every score.

    Args:
        rows: dicts of what: str; scores: a list of numbers by name; cpu_minutes: list.
    """
    lines = ["| task | mean ± sd | CPU minutes a seed |", "| --- | --- | --- |"]
    for row in rows:
        scores = ", ".join(
            f"{name} {mean_and_spread(values)}"
            for name, values in row["scores"].items()
        )
        minutes = mean_and_spread(row["cpu_minutes"]).split()[0]
        lines.append(f"| {row['what']} | {scores} | {minutes} |")
    return "\n".join(lines) + "\n"


def mean_and_spread(values: list[float]) -> str:
    if not values:
        return "?"
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {spread:.1f}"
