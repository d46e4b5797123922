"""A program that was requested with int8 weights has them: its adapter names the operations, and its size shows it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rnnbench.backends.answers import AdapterError, CheckedBackend, check_program
from rnnbench.backends.base import Allocated, Artifact, ProgramFiles, Request, Signature
from rnnbench.backends.shared.compound import JoiningBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

MODEL = Model(cell="lstm", input=64, hidden=128)
INT8_BYTES, FLOAT32_BYTES = MODEL.weight_count + 5_000, 4 * MODEL.weight_count


def checked(folder: Path, nbytes: int, int8_operations: tuple[str, ...] = ("product",), dtype: str = "int8_dynamic"):
    path = folder / "program"
    path.write_bytes(bytes(nbytes))
    artifact = Artifact(
        source_digest="0",
        operations={"compiled": {"product": 2}},
        int8_operations=int8_operations,
        lowered="fused",
        origin="library",
        math="exact",
    )
    files = ProgramFiles((path,))
    program: Any = SimpleNamespace(
        signature=Signature(()), artifact=artifact, files=files, cached=False, tail_build_s=None, open=lambda: None
    )
    strategy = Strategy("fused", "stitched", 4)
    check_program("b", program, Request("r", MODEL, Weights(), strategy, 1, Precision.of(dtype)), folder)


def test_an_int8_program_of_a_byte_a_weight_is_accepted(tmp_path: Path) -> None:
    checked(tmp_path, INT8_BYTES)


def test_a_float32_program_names_no_int8_operation(tmp_path: Path) -> None:
    checked(tmp_path, FLOAT32_BYTES, (), "float32")


@pytest.mark.parametrize(
    ("nbytes", "operations", "message"),
    [
        (INT8_BYTES, (), "names no operation that multiplies by them"),
        (INT8_BYTES, ("lstm",), "its int8 operation 'lstm' is none of its compiled operations"),
        (FLOAT32_BYTES, ("product",), "as many as float32 takes"),
    ],
)
def test_float32_that_is_called_int8_is_refused(
    tmp_path: Path, nbytes: int, operations: tuple[str, ...], message: str
) -> None:
    with pytest.raises(AdapterError, match=message):
        checked(tmp_path, nbytes, operations)


def counting(answer: object) -> CheckedBackend:
    adapter: Any = SimpleNamespace(allocated=lambda device: answer)
    return CheckedBackend("b", adapter)


def test_a_count_of_a_device_s_memory_is_passed_on_and_an_adapter_may_have_none() -> None:
    assert counting(Allocated(5, 7)).allocated("cuda") == Allocated(5, 7)
    assert counting(None).allocated("cuda") is None
    without: Any = SimpleNamespace()
    assert CheckedBackend("b", without).allocated("cuda") is None


def test_what_an_adapter_prepares_is_asked_of_it_and_an_adapter_may_have_nothing_to_prepare() -> None:
    prepared: list[tuple[str, str]] = []
    adapter: Any = SimpleNamespace(prepare_builds=lambda route, device: prepared.append((route, device)))
    CheckedBackend("b", JoiningBackend("b", adapter)).prepare_builds("r", "cpu")
    assert prepared == [("r", "cpu")]
    without: Any = SimpleNamespace()
    CheckedBackend("b", JoiningBackend("b", without)).prepare_builds("r", "cpu")
    fails: Any = SimpleNamespace(prepare_builds=lambda route, device: 1 // 0)
    with pytest.raises(AdapterError, match="failed to answer: ZeroDivisionError"):
        CheckedBackend("b", fails).prepare_builds("r", "cpu")


@pytest.mark.parametrize("answer", [5, Allocated(-1, 7), Allocated(5, -7), Allocated(7, 5), Allocated("many", 7)])  # type: ignore[arg-type]
def test_a_count_that_cannot_be_is_refused(answer: object) -> None:
    with pytest.raises(AdapterError, match="'b' returned no valid answer from allocated"):
        counting(answer).allocated("cuda")
