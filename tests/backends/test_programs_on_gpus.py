"""The table of docs/backends/overview.md, which routes have programs for GPUs, against what the adapters answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rnnbench.backends import registry
from rnnbench.backends.base import Request
from rnnbench.backends.shared import Abilities, support_of
from rnnbench.backends.sources import is_own
from rnnbench.cases.trial import Launch, Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

OVERVIEW = Path(__file__).parents[2] / "docs/backends/overview.md"
COLUMNS: tuple[tuple[str, Launch], ...] = (("cuda", "stream"), ("cuda", "graph"), ("vulkan", "stream"))
TIMES = ("fused", "looped", "unrolled")


def rows() -> dict[str, list[str]]:
    """The cells of the table behind each route."""
    section = OVERVIEW.read_text().partition("## Programs on GPUs")[2].partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            routes, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", routes), cells)
    return found


def supported(backend: str, route: str, device: str, launch: Launch) -> str:
    """As the table has it."""
    adapter = registry.find(backend)
    probe = adapter.probe()
    model = Model(cell="lstm", input=8, hidden=8)
    times = []
    for time in TIMES:
        strategy = Strategy(time, "stitched", 8, launch)
        request = Request(route, model, Weights(), strategy, 1, Precision.of("float32"), device)
        answer = support_of(adapter, request, Abilities.of(probe))
        times += [time] if answer.level != "unsupported" else []
    return ", ".join(times) or "—"


@pytest.mark.parametrize("backend", list(filter(is_own, registry.names())))
def test_the_table_says_what_the_adapters_answer(backend: str) -> None:
    table = rows()
    for route in registry.find(backend).probe().routes:
        assert table[f"{backend}:{route}"] == [supported(backend, route, *column) for column in COLUMNS]


def test_each_backend_of_make_test_gpu_has_programs_in_the_files_that_it_runs() -> None:
    """It runs no other files: many of those need packages of other backends, which a user with a GPU may not have."""
    makefile = (OVERVIEW.parents[2] / "Makefile").read_text()
    named = re.search(r"^GPU_BACKENDS \?= (.+)$", makefile, re.MULTILINE)
    assert named is not None
    assert "tests/backends/$$backend/test_cuda*.py -k test_a_gpu_gives" in makefile
    for backend in named[1].split():
        files = list((Path(__file__).parent / backend).glob("test_cuda*.py"))
        assert any("def test_a_gpu_gives" in file.read_text() for file in files), backend
