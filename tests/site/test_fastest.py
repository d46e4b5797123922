"""Heat maps of the overview."""

from __future__ import annotations

import fake_records as fake

from rnnbench.reports import seconds
from rnnbench.results import read_run
from rnnbench.site.content import read_content
from rnnbench.site.fastest import heat_maps

STATES = {"stateful": 80e-6, "stitched": 160e-6}


def test_each_program_stands_under_its_own_origin_and_is_compared_there(tmp_path):
    """A target may have a library's operator and loops that were written here, as ONNX Runtime has."""
    loop = fake.record(bound=100e-6)
    records = [
        fake.record(time="fused", bound=50e-6),
        fake.record(time="fused", state="stateful", outcome="unsupported"),
        loop.model_copy(update={"artifact": loop.artifact.model_copy(update={"origin": "authored"})}),
        fake.record("fakemlir", "linalg", bound=80e-6),
        fake.record("fakemlir", "onnx", time="fused", state="stateful", bound=70e-6),
    ]
    (found,) = heat_maps(read_content([read_run(fake.write_run(tmp_path / "run", records))], None))
    assert {
        (group.origin, line.program, strategy): cell.words.partition(" ")[2] or cell.words
        for group in found.groups
        for line in group.lines
        for strategy, cell in zip(found.strategies, line.cells, strict=True)
        if cell
    } == {
        ("library", "fakelib:ops", "fused-stitched"): "fastest",
        ("library", "fakelib:ops", "fused-stateful"): "unsupported",
        ("imported", "fakemlir:onnx", "fused-stateful"): "fastest",
        ("authored", "fakelib:ops", "looped-stitched"): "slower",
        ("authored", "fakemlir:linalg", "looped-stitched"): "fastest",
    }


def test_a_cell_has_the_latency_of_a_step_and_says_where_its_verdict_is_on_another_run(tmp_path):
    """The verdict is then that on two runs."""
    records = [fake.record("fakemlir", "linalg", state=state, bound=of) for state, of in STATES.items()]
    runs = [
        read_run(fake.write_run(tmp_path / day, [record], started=f"2026-01-{day}T12:00:00Z"))
        for day, record in zip(("30", "31"), records, strict=True)
    ]
    (found,) = heat_maps(read_content(runs, None))
    cells = [cell for group in found.groups for cell in group.cells]
    for cell, record, words in zip(cells, records, ("fastest", "slower, another run"), strict=True):
        assert cell.figure.startswith(seconds(record.latency("bound").median / record.params.chunk))
        assert cell.words.endswith(words)
