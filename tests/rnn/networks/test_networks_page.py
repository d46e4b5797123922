"""docs/networks.md tells what is: its tables have every network with its figures, and its example is a network."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from small_networks import COMPOSED, small

from rnnbench.backends import Request, Support, names
from rnnbench.cases import Precision, Strategy
from rnnbench.plan import probe, supports
from rnnbench.rnn import LINEAR_PRIMITIVES, draw_weights, primitives_of
from rnnbench.rnn.composed import ComposedNetwork

PAGE = (Path(__file__).parents[3] / "docs" / "networks.md").read_text(encoding="utf-8")
TABLE, LAYERS, ROUTES, *_ = [
    [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
]
ROWS = {row[0].strip("`"): row for row in TABLE}
TIMES = ("looped", "unrolled", "unrolled:2", "parallel", "chunked:2", "fused")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name", COMPOSED)
def test_the_table_has_its_sizes(name: str) -> None:
    network = COMPOSED[name]()
    state = sum(rows * size for rows, _, size in network.state_shapes(1).values())
    sizes = f"{network.input:,} → {network.width:,}"
    assert ROWS[name][2:5] == [sizes, f"{network.weight_count:,}", f"{state:,}"]
    assert set(re.findall(r"`(\w+)`", "|".join(ROWS[name][5:]))) == primitives_of(network)


def test_the_tables_have_no_other_network() -> None:
    assert set(ROWS) == {row[0].strip("`") for row in LAYERS} == set(COMPOSED)


def test_the_example_is_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "example_tagger.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (family,) = import_module("example_tagger").FAMILIES
    network = family()
    assert network.weight_count == 3 * 200 * (100 + 200 + 2) + 17 * 201
    assert primitives_of(network) == frozenset()
    assert [smaller.params for smaller in network.smaller()]


def test_the_table_of_routes_says_what_the_adapters_declare() -> None:
    columns = ("columns", "concat", "div", "mean", "sqrt", "while")
    listed = {route: row[1:8] for row in ROUTES for route in re.findall(r"`(\w+:[\w-]+)`", row[0])}
    declared = {
        f"{name}:{route}": [
            "✓" if needed <= primitives else "" for needed in (*({one} for one in columns), LINEAR_PRIMITIVES)
        ]
        for name in names()
        if name != "fake"
        for route, primitives in probe(name).authors.items()
    }
    assert listed == declared


def test_the_table_of_routes_says_which_times_each_supports() -> None:
    """Of `mingru` and `gla`, whose states are linear. `linalg-direct` is for devices that are not everywhere."""
    networks = [small(name) for name in ("mingru", "gla")]
    for row in ROUTES:
        told = set(re.findall(r"\b(looped|unrolled:k|unrolled|parallel|chunked:k|fused)\b", row[8]))
        for name, route in re.findall(r"`(\w+):([\w-]+)`", row[0]):
            if route == "linalg-direct":
                continue
            asked = [(time, network) for time in TIMES for network in networks]
            answers = supports(name, [_asked(route, network, time) for time, network in asked])
            levels = [answer.level for answer in answers if isinstance(answer, Support)]
            assert len(levels) == len(asked)
            found = {time for (time, _), level in zip(asked, levels, strict=True) if level != "unsupported"}
            assert {time.replace(":2", ":k") for time in found} == told, f"{name}:{route}"


def _asked(route: str, network: ComposedNetwork, time: str) -> Request:
    weights = draw_weights(network, 0, "float32")
    return Request(route, network, weights, Strategy(time, "stitched", 4), 1, Precision.of("float32"))
