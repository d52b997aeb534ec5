"""The arithmetic of `benchmarks.training_step`: from the answers of workers to a table.

A measurement is a dict of the settings of a variant and what its worker answered, see
`benchmarks.step_workers.protocol`:

    name: str; library: str; precision: str; is_default: bool, how the library comes
    starts: answers about the start, of each process that was started
    turns: answers about some steps, one a round, the same rounds for all variants

The clock counts at its best, as others may use the machine too; seconds of the CPU
hardly depend on them, so these are medians, and ratios of these go round by round.
"""

import statistics

PRODUCTS, OURS = "products", "ours"  # libraries that the others are compared with


def all_of(measurement: dict, clock: str) -> list[float]:
    """Seconds of every step; `clock` is "wall" or "cpu"."""
    return [seconds for turn in measurement["turns"] for seconds in turn[clock]]


def times_longer(measurement: dict, other: dict | None) -> dict[str, float] | None:
    """How many times the other's time a step takes, by clock; None without other."""
    if other is None:
        return None
    pairs = zip(measurement["turns"], other["turns"], strict=True)
    ratios = [
        statistics.median(a["cpu"]) / statistics.median(b["cpu"]) for a, b in pairs
    ]
    return {
        "cpu": statistics.median(ratios),
        "wall": min(all_of(measurement, "wall")) / min(all_of(other, "wall")),
    }


def find(measurements: list[dict], library: str, precision: str) -> dict | None:
    """The first one of them, if there is one."""
    for measurement in measurements:
        if (measurement["library"], measurement["precision"]) == (library, precision):
            return measurement
    return None


def make_rows(
    measurements: list[dict], step_flops: float, product_flops: float
) -> list[dict]:
    """A row for every variant, the products too.

    Args:
        measurements: see above.
        step_flops: of a step of a model.
        product_flops: of a step of matrix products.
    Returns:
        dicts of what the measurement has and cpu_seconds, a step, median;
        wall_seconds, the shortest; first_wall, median; peak_bytes, the largest;
        product_share, flops_per_second, beside_ours (at the same precision) and
        beside_bfloat16 (ours), by clock.
    """
    rows = []
    for measurement in measurements:
        library, precision = measurement["library"], measurement["precision"]
        flops = product_flops if library == PRODUCTS else step_flops
        seconds = {
            "cpu": statistics.median(all_of(measurement, "cpu")),
            "wall": min(all_of(measurement, "wall")),
        }
        row = {
            **measurement,
            "cpu_seconds": seconds["cpu"],
            "wall_seconds": seconds["wall"],
            "flops_per_second": {clock: flops / s for clock, s in seconds.items()},
            "first_wall": statistics.median(
                start["first_wall"] for start in measurement["starts"]
            ),
            "peak_bytes": max(turn["peak_bytes"] for turn in measurement["turns"]),
        }
        if library != PRODUCTS:
            products = find(measurements, PRODUCTS, precision)
            longer = times_longer(measurement, products)
            row["product_share"] = longer and {
                clock: step_flops / product_flops / times
                for clock, times in longer.items()
            }
            for key, kind in (("ours", precision), ("bfloat16", "bfloat16")):
                ours = find(measurements, OURS, kind)
                row[f"beside_{key}"] = times_longer(measurement, ours)
        rows.append(row)
    return rows


def markdown(rows: list[dict]) -> str:
    """The table, and a line about the matrix products."""
    lines = [
        "| variant | CPU s a step | shortest s | of the products' rate, CPU / clock "
        "| ours as precise: times faster, CPU / clock | ours in bfloat16: the same "
        "| first step s | peak GiB |",
        "| --- " * 8 + "|",
    ]
    products = []
    for row in rows:
        if row["library"] == PRODUCTS:
            rates = "{cpu:.0f} / {wall:.0f}".format(
                **{c: rate / 1e9 for c, rate in row["flops_per_second"].items()}
            )
            products.append(f"{row['precision']} {rates}")
            continue
        cells = [
            f"`{row['name']}`" + (", as it comes" if row["is_default"] else ""),
            f"{row['cpu_seconds']:.3g}",
            f"{row['wall_seconds']:.3g}",
            both(row["product_share"], "{:.0%}"),
            both(row["beside_ours"], "{:.2f}"),
            both(row["beside_bfloat16"], "{:.2f}"),
            f"{row['first_wall']:.1f}",
            f"{row['peak_bytes'] / 2**30:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if products:
        rates = "; ".join(products)
        lines += ["", f"Matrix products, GFLOPs a CPU second / a second: {rates}."]
    versions = {row["library"]: row["starts"][0]["versions"] for row in rows}
    lines += [
        "",
        "; ".join(
            f"{library}: {', '.join(f'{name} {v}' for name, v in named.items())}"
            for library, named in versions.items()
            if library != PRODUCTS
        ),
    ]
    return "\n".join(lines) + "\n"


def both(by_clock: dict[str, float] | None, form: str) -> str:
    """By CPU and by the clock, or a dash where there was nothing to compare with."""
    if by_clock is None:
        return "–"
    return f"{form.format(by_clock['cpu'])} / {form.format(by_clock['wall'])}"
