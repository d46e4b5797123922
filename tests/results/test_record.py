"""A record comes back from JSON as it went in, whatever it holds."""

from __future__ import annotations

import json
import math

import fake_records as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from quick_tests import examples

from rnnbench.results.record import SCHEMA, CheckResult, CommonTrial, Environment, Record, worst_rounding
from rnnbench.results.run_info import RunInfo
from rnnbench.results.timing import Timing

numbers = st.floats(allow_nan=False, allow_infinity=True)
texts = st.text(max_size=40)


@st.composite
def records(draw: st.DrawFn) -> Record:
    entry = fake.record(
        outcome=draw(st.sampled_from(fake.OUTCOMES)),
        time=draw(st.sampled_from(["fused", "looped", "unrolled", "unrolled:4"])),
        chunk=draw(st.integers(1, 1 << 16)),
        bound=draw(st.floats(1e-7, 1e3)),
        reason=draw(texts),
        same_as=draw(st.none() | texts),
    )
    checks = draw(
        st.dictionaries(
            texts,
            st.builds(
                CheckResult,
                verdict=st.sampled_from(["pass", "fail", "chaotic", "not-applicable"]),
                detail=texts,
                max_abs=st.none() | numbers,
                max_ulp=st.none() | numbers,
                rounding=st.none() | numbers,
            ),
            max_size=3,
        )
    )
    return entry.model_copy(update={"conformance": checks, "version": draw(st.dictionaries(texts, texts, max_size=3))})


@given(records())
@examples(40)
def test_a_record_survives_json_on_one_line(entry: Record) -> None:
    line = entry.model_dump_json()
    assert "\n" not in line
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert Record.model_validate_json(line) == entry


def test_the_keys_on_disk_are_the_documented_ones() -> None:
    content = json.loads(fake.record().model_dump_json())
    assert content["schema"] == SCHEMA
    assert "schema_" not in content
    assert json.loads(fake.info().model_dump_json())["schema"] == SCHEMA


def test_the_common_trial_of_sampling_groups_is_the_field_anchor_in_a_file():
    common = CommonTrial(trial="first", group=1, groups=2, bound=1e-4)
    record = fake.record().model_copy(update={"common_trial": common})
    line = record.model_dump_json()
    assert json.loads(line)["anchor"]["trial"] == "first"
    assert "common_trial" not in json.loads(line)
    assert Record.model_validate_json(line).common_trial == common


def test_an_error_that_is_not_a_number_is_kept_as_such() -> None:
    figure = CheckResult(verdict="fail", max_abs=float("nan"), rounding=float("inf"))
    again = CheckResult.model_validate_json(figure.model_dump_json())
    assert again.max_abs != again.max_abs
    assert again.rounding == float("inf")
    assert again.max_ulp is None


def test_an_unknown_key_is_refused() -> None:
    content = json.loads(fake.record().model_dump_json())
    with pytest.raises(ValidationError, match="latency"):
        Record.model_validate({**content, "latency": 1.0})


def test_records_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        fake.record().outcome = "ok"
    with pytest.raises(ValidationError, match="frozen"):
        Timing().build_s = 1.0


def test_run_info_survives_json() -> None:
    assert RunInfo.model_validate_json(fake.info().model_dump_json()) == fake.info()


def test_no_busy_thread_means_that_none_was_seen() -> None:
    content = json.loads(fake.record().environment.model_dump_json())
    assert Environment.model_validate({**content, "threads_busy": 0}).threads_busy is None
    assert Environment.model_validate({**content, "threads_busy": 2}).threads_busy == 2


def test_a_copy_with_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Record has no field anchor"):
        fake.record().model_copy(update={"anchor": None, "reason": "none"})


@pytest.mark.parametrize("errors", [(0.5, math.nan, 3.0), (math.nan, 3.0, None), (3.0, None, math.nan)])
def test_an_error_that_is_no_number_is_the_worst(errors: tuple[float | None, ...]) -> None:
    results = [CheckResult(verdict="pass", rounding=error) for error in errors]
    assert math.isnan(worst_rounding(results) or 0.0)
    assert worst_rounding(result for result in results if result.rounding == 3.0) == 3.0
    assert worst_rounding([CheckResult(verdict="pass")]) is None
