"""Claims about artifacts are held against what is counted or timed in a second way. No honest one is accused."""

from __future__ import annotations

from pathlib import Path

import fake_records
import pytest

from rnnbench.results import read_run
from rnnbench.results.claims import Claim, contradictions
from rnnbench.results.lowered_form import parse_lowered
from rnnbench.results.record import LatencyFloor, Record
from rnnbench.results.timing import Timing

RUNS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("run", ["reference", "realtime", "scaling"])
def test_no_record_of_a_committed_run_is_accused(run):
    records = read_run(RUNS / run).records
    artifacts = [record.artifact for record in records if record.artifact]
    assert artifacts
    assert all(parse_lowered(artifact.lowered) for artifact in artifacts)
    assert contradictions(records) == []


@pytest.mark.parametrize(
    ("text", "loops", "copies", "fused"),
    [
        ("fused", 0, 0, True),
        ("looped 2", 2, 0, False),
        ("looped 2 of 4", 2, 0, False),
        ("unrolled 16", 0, 16, False),
        ("fused + looped 1 of 8 + looped 1 + unrolled 3", 2, 3, True),
        ("parallel 3", 0, 0, False),
        ("chunked 2 of 8 + chunked 1", 2, 0, False),
    ],
)
def test_a_form_says_its_loops_and_copies(text, loops, copies, fused):
    form = parse_lowered(text)
    assert form is not None
    assert (form.loops, form.copies, form.fused) == (loops, copies, fused)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unrolled",
        "looped",
        "fused 3",
        "unrolled 4 of 2",
        "parallel 4 of 2",
        "looped -1",
        "looped 1 , unrolled 2",
        "vectorised 4",
        " fused",
    ],
)
def test_what_is_of_no_form_is_told(text):
    assert parse_lowered(text) is None


def record(chunk: int, lowered: str = "looped 1", operations: int = 100, **changes: object) -> Record:
    one = fake_records.record("fakemlir", "linalg", chunk=chunk)
    assert one.artifact is not None
    artifact = one.artifact.model_copy(
        update={
            "lowered": lowered,
            "operations": {"compiled": {"op": operations}},
            "hoisted": changes.pop("hoisted", None),
        }
    )
    return one.model_copy(update={"artifact": artifact, **changes})


def claimed(*records: Record) -> list[Claim]:
    return [one.claim for one in contradictions(records)]


def test_copies_need_operations():
    assert claimed(record(64, "unrolled 64", operations=20)) == [Claim.LOWERED]
    assert claimed(record(64, "unrolled 64", operations=64)) == []
    assert claimed(record(4, "unrolled 4", operations=1)) == []


def test_a_loop_does_not_grow_with_the_chunk():
    assert claimed(record(16, operations=100), record(128, operations=760)) == [Claim.LOWERED]
    assert claimed(record(16, operations=100), record(128, operations=130)) == []


@pytest.mark.parametrize("form", ["fused", "fused + looped 1", "looped 1 + unrolled 3", "parallel 3"])
def test_only_a_loop_alone_must_not_grow(form):
    assert claimed(record(16, form, operations=100), record(128, form, operations=760)) == []


def test_copies_grow_with_the_chunk():
    few, many = record(16, "unrolled 16", operations=200), record(128, "unrolled 128", operations=210)
    assert claimed(few, many) == [Claim.LOWERED]
    assert claimed(few, record(128, "unrolled 128", operations=1400)) == []


def test_a_hoisted_that_a_steps_latency_contradicts_is_told():
    def timed(chunk: int, seconds: float, hoisted: int) -> Record:
        bound = fake_records.latency(seconds, chunk)
        floor = LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=hoisted, level="L2", seconds=1e-6 * chunk)
        return record(chunk, hoisted=hoisted, timing=Timing(latency={"bound": bound}), floor=floor)

    assert claimed(timed(4, 8e-6, 1), timed(64, 30e-6, 1)) == [Claim.HOISTED]
    assert claimed(timed(4, 8e-6, 1), timed(64, 70e-6, 1)) == []
    # A claim that a call reads the weights once lowers the floor as far as no claim does.
    assert claimed(timed(4, 8e-6, 4), timed(64, 30e-6, 64)) == []


@pytest.mark.parametrize(
    ("nbytes", "weights", "told"), [(400_000, 1_000_000, True), (500_000, 1_000_000, False), (100, 60_000, False)]
)
def test_files_that_are_smaller_than_their_weights_are_told(nbytes, weights, told):
    floor = LatencyFloor(nbytes=1, operations=1, weights=weights, hoisted=None, level="L2")
    one = record(16, floor=floor)
    assert one.artifact is not None
    one = one.model_copy(update={"artifact": one.artifact.model_copy(update={"nbytes": nbytes})})
    assert claimed(one) == [Claim.SIZE] * told
    of_a_file = one.params.model_copy(update={"model": {"network": "file", "file": "mine.onnx"}})
    assert claimed(one.model_copy(update={"params": of_a_file})) == []
