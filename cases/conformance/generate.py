"""Writes the conformance cases: covering arrays by allpairspy, with every possible pair of values in at least one row.

python cases/conformance/generate.py        writes them again; a test fails if they are not current.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

from allpairspy import AllPairs

from rnnbench.cases.expand import scalar
from rnnbench.cases.matrix import Value
from rnnbench.cases.schema import LEAVES

Row = dict[str, Value]
Pair = tuple[tuple[str, Value], ...]

CELLS: Mapping[str, Row] = {
    "lstm": {"cell": "lstm"},
    "gru": {"cell": "gru"},
    "gru, reset before": {"cell": "gru", "reset_after": False},
    "rnn": {"cell": "rnn"},
    "lstm, projection": {"cell": "lstm", "projection": 5},
    "lstm, clip": {"cell": "lstm", "clip": 0.5},
    "gru, clip": {"cell": "gru", "clip": 0.5},
    "rnn, clip": {"cell": "rnn", "clip": 0.5},
    "lstm, cell clip": {"cell": "lstm", "cell_clip": 0.2},
    "lstm, projection and both clips": {"cell": "lstm", "projection": 5, "clip": 0.5, "cell_clip": 0.2},
    "lstm, relu": {"cell": "lstm", "activation": "relu"},
    "gru, relu": {"cell": "gru", "activation": "relu"},
    "rnn, relu": {"cell": "rnn", "activation": "relu"},
    "lstm, hard sigmoid": {"cell": "lstm", "recurrent_activation": "hard_sigmoid"},
    "gru, hard sigmoid": {"cell": "gru", "recurrent_activation": "hard_sigmoid", "reset_after": False},
    "lstm, larger weights": {"cell": "lstm", "gain": 2},
    "counter": {"cell": "counter", "input": 17},
    "lstm, two threads": {"cell": "lstm", "threads": 2, "hidden": 128},
    "gru, two threads": {"cell": "gru", "threads": 2, "hidden": 128},
    "lstm, ragged": {"cell": "lstm", "lengths": "ragged", "batch": 3},
    "gru, ragged": {"cell": "gru", "lengths": "ragged", "batch": 3},
    "rnn, ragged": {"cell": "rnn", "lengths": "ragged", "batch": 3},
}
"""The cells, each with the values of other keys that it needs."""
PLAIN = ["lstm", "gru", "gru, reset before", "rnn"]
RAGGED = ["lstm, ragged", "gru, ragged", "rnn, ragged"]
TIMES = ["fused", "looped", "unrolled", "unrolled:2"]
SIZES: Mapping[str, Sequence[Value]] = {
    "cell": PLAIN,
    "state": ["stitched", "stateful", "none"],
    "chunk": [4, 1, 3, "all"],
    "steps": [12, 7, 8],
    "hidden": [17, 1, 3, 33, 127, 128],
    "input": [8, 1, 5],
    "batch": [1, 2, 5],
    "layers": [1, 2, 3],
    "direction": ["forward", "reverse", "bidirectional"],
    "bias": [True, False],
}
VARIANTS: Mapping[str, Sequence[Value]] = {
    "cell": ["lstm", *(cell for cell in CELLS if cell not in (*PLAIN, "rnn, ragged"))],
    "time": TIMES[:3],
    "state": ["stitched", "stateful", "none"],
    "chunk": [4, 1],
    "layers": [1, 2],
    "direction": ["forward", "bidirectional"],
}
LENGTHS: Mapping[str, Sequence[Value]] = {
    "time": TIMES[:3],
    "cell": RAGGED,
    "direction": ["forward", "reverse", "bidirectional"],
    "chunk": [4, "all"],
    "layers": [1, 2],
}
"""Only calls of several steps: in a call of one step, every row has the same length."""
DTYPES: Mapping[str, Sequence[Value]] = {
    "dtype": ["float16", "bfloat16", "float64"],
    "cell": PLAIN,
    "time": TIMES[:3],
    "state": ["stitched", "stateful"],
    "chunk": [4, 1, "all"],
    "hidden": [17, 128],
    "batch": [1, 3],
}
INT8: Mapping[str, Sequence[Value]] = {
    "dtype": ["int8_dynamic", "int8_weights", "int8_static"],
    "cell": ["lstm", "gru", "rnn", "lstm, clip", "lstm, projection"],
    "time": TIMES[:3],
    "state": ["stitched", "stateful", "none"],
    "chunk": [4, 1],
    "hidden": [33, 128],
    "batch": [1, 3],
    "layers": [1, 2],
    "bias": [True, False],
}
ENDURANCE: Mapping[str, Sequence[Value]] = {
    "cell": ["lstm", "gru"],
    "time": TIMES[:3],
    "state": ["stitched", "stateful"],
}


@dataclass(frozen=True)
class Array:
    """A conformance case: its axes, and the other values of its file; one array for each value of the axis `each`."""

    description: str
    axes: Mapping[str, Sequence[Value]]
    each: str = ""
    constants: Row = field(default_factory=dict)
    """Values of keys that are not axes of this case and differ from `DEFAULTS`."""
    endurance: str = "50ms"
    enough: str = "50ms"
    """Empty where the checks that repeat something are to have all of their time."""


NETWORKS = Array(
    "For each of four values of time, every possible pair of values of ten other axes.",
    {"time": TIMES, **SIZES},
    each="time",
)
CASES: Mapping[str, Array] = {
    "networks": NETWORKS,
    "variants": Array(
        "Every possible pair of values of six axes, for cells with features that some runtimes lack.", VARIANTS
    ),
    "lengths": Array(
        "For each of three values of time, every pair of values of four other axes, for rows with their own lengths.",
        LENGTHS,
        each="time",
        constants={"state": "none"},
    ),
    "dtypes": Array("Every pair of values of seven axes, in float16, bfloat16 and float64.", DTYPES),
    "int8": Array("Every pair of values of nine axes, with int8 weights.", INT8, constants={"input": 32}),
    "endurance": Array(
        "The long checks, with ten thousand steps and ten thousand calls.",
        ENDURANCE,
        constants={"hidden": 16},
        endurance="1s",
        enough="",
    ),
}
LIMITS = "limits: {{build: 120s, trial: 240s, memory: 4GiB, endurance: {}{}}}"
DEFAULTS: Row = {"steps": 12, "input": 8, "hidden": 17, "chunk": 4, "dtype": "float32"}
"""Values of required keys that are not axes of a case."""


def possible(row: Row) -> bool:
    """Whether one trial can have these values; the row may be complete or partial."""
    cell, chunk, steps, state = str(row.get("cell")), row.get("chunk"), row.get("steps"), row.get("state")
    call = steps if chunk == "all" else chunk
    one_way = CELLS.get(cell, {}).get("cell") == "counter"
    return not (
        (row.get("direction", "forward") != "forward" and (state not in (None, "none") or one_way))
        or (one_way and row.get("layers", 1) != 1)
        or ("ragged" in cell and state not in (None, "none"))
        or (state == "none" and isinstance(call, int) and isinstance(steps, int) and steps % call)
        or (row.get("time") == "unrolled:2" and isinstance(call, int) and call % 2)
    )


def rows_of(case: Array) -> list[Row]:
    """The rows of all arrays of a case."""
    if not case.each:
        return array(case.axes)
    return [row for value in case.axes[case.each] for row in array({**case.axes, case.each: [value]})]


def array(axes: Mapping[str, Sequence[Value]]) -> list[Row]:
    """Rows that contain every possible pair of values: allpairspy's, and more for the pairs that it left out."""

    def allowed(values: Sequence[Value]) -> bool:
        return possible(dict(zip(axes, values, strict=False)))

    rows = [dict(zip(axes, values, strict=True)) for values in AllPairs(list(axes.values()), filter_func=allowed)]
    missing = set(every_pair(axes)).difference(*map(pairs, rows))
    for pair in every_pair(axes):
        if pair in missing and (row := completed(dict(pair), axes, missing)) is not None:
            rows.append(row)
            missing.difference_update(pairs(row))
    return rows


def pairs(row: Row) -> Iterator[Pair]:
    return combinations(row.items(), 2)


def every_pair(axes: Mapping[str, Sequence[Value]]) -> Iterator[Pair]:
    """All pairs of values of two axes, also those that exclude each other."""
    for (one, values), (other, others) in combinations(axes.items(), 2):
        yield from (((one, a), (other, b)) for a, b in product(values, others))


def completed(row: Row, axes: Mapping[str, Sequence[Value]], missing: Collection[Pair] = ()) -> Row | None:
    """A possible row with these values and many of the pairs in `missing`; None if there is none."""
    if not possible(row):
        return None
    axis = next((name for name in axes if name not in row), None)
    if axis is None:
        return {name: row[name] for name in axes}

    def new_pairs(value: Value) -> int:
        return sum(pair in missing for pair in pairs({name: {**row, axis: value}.get(name) for name in axes}))

    candidates = (
        completed({**row, axis: value}, axes, missing) for value in sorted(axes[axis], key=new_pairs, reverse=True)
    )
    return next((candidate for candidate in candidates if candidate is not None), None)


def text(name: str) -> str:
    """The case file: the first row gives the case's own values, and `include` adds the others."""
    case = CASES[name]
    rows = [_leaves(row) for row in rows_of(case)]
    first = {**DEFAULTS, **case.constants, **rows[0]}
    lines = [
        "# yaml-language-server: $schema=../../suite/rnnbench/cases/schema.json",
        "# Written by generate.py, which has the axes and the values that exclude each other.",
        "schema: 1",
        f"name: {name}",
        f"description: {case.description}",
    ]
    for section in ("model", "workload", "strategy", "target"):
        values = {leaf: value for leaf, value in first.items() if LEAVES[leaf] == section}
        if values:
            lines.append(f"{section}: {_flow(values)}")
    limits = LIMITS.format(case.endurance, f", enough: {case.enough}" if case.enough else "")
    lines += ["matrix:", "  include:", *(f"    - {_flow(row)}" for row in rows[1:]), limits]
    return "\n".join(lines) + "\n"


def _leaves(row: Row) -> Row:
    return {**row, **CELLS[str(row["cell"])]}


def _flow(values: Row) -> str:
    parts = (
        f'{leaf}: "{value}"' if ":" in str(value) else f"{leaf}: {scalar(value)}" for leaf, value in values.items()
    )
    return "{" + ", ".join(parts) + "}"


def main() -> None:
    for name in CASES:
        (Path(__file__).parent / f"{name}.yaml").write_text(text(name))


if __name__ == "__main__":
    main()
