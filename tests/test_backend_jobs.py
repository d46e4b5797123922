"""Every test of a backend has a job of `make test` that runs it, whatever its parameters are."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from backend_jobs import FOLDER, JOBS, collects, is_run, items_of, job_of

MAKEFILE = Path(__file__).parents[1] / "Makefile"


def test_the_makefile_has_each_job() -> None:
    (named,) = re.findall("^BACKENDS := (.*)$", MAKEFILE.read_text(), re.MULTILINE)
    jobs = re.split("[ ,]", named)
    assert set(jobs) == JOBS
    assert len(jobs) == len(JOBS), "a job that is named twice runs twice"


@pytest.mark.parametrize(
    ("test", "job"),
    [
        ("test_common.py::test_reset[tvm:tir-lstm]", "tvm"),
        ("test_common.py::test_reset[iree:torch-lstm]", "iree-torch"),
        ("test_base.py::test_a_count", "numpy"),
        ("tvm/test_programs.py::test_copies[unrolled:2-none-looped 5 of 2]", "tvm"),
        ("shared/test_lowered_form.py::test_form[chunked:8-1]", "onnxruntime"),
        ("shared/test_compound.py::test_a_stream[numpy:eager]", "numpy"),
        ("shared/test_compound.py::test_the_loop[jax:jit-stitched]", "jax"),
        ("torch/test_pt2_types.py::test_a_file[tvm:torch-Counting]", "tvm"),
        ("tensorflow/test_file_types.py::test_a_model[iree:tensorflow-counted]", "iree-tensorflow"),
        ("iree/test_imported.py::test_what_is_said[onnx-fused]", "iree"),
        ("iree/test_imported.py::test_what_is_said[torch-fused]", "iree-torch"),
        ("iree/test_imported.py::test_the_variables_of_tensorflow", "iree-tensorflow"),
        ("iree/test_vulkan.py::test_a_device", "iree-vulkan"),
    ],
)
def test_a_test_has_a_job_that_collects_its_file(test: str, job: str) -> None:
    """Beside the name of a backend, a colon stands in strategies such as `unrolled:2`."""
    assert job_of(f"tests/backends/{test}") == job
    assert is_run(f"tests/backends/{test}")


@pytest.mark.parametrize("test", ["litert/test_files.py::test_a_file[openvino:opset]", "other/test_it.py::test_it"])
def test_a_test_without_one_is_seen(test: str) -> None:
    assert not is_run(f"tests/backends/{test}")


def test_a_job_looks_into_no_folder_of_another_framework() -> None:
    assert collects("torch", PurePosixPath("torch"))
    assert collects("tvm", PurePosixPath("torch"))
    assert not collects("tvm", PurePosixPath("torch/test_torch.py"))
    assert not collects("jax", PurePosixPath("torch"))


class Item:
    """A collected test."""

    def __init__(self, test: str) -> None:
        self.nodeid = f"tests/{test}"
        self.path = FOLDER.parent / test.partition("::")[0]


def test_a_job_runs_its_tests_and_leaves_those_outside_of_the_backends_alone() -> None:
    outside: Any = Item("test_locks.py::test_one[tvm:tir]")
    tvm: Any = Item("backends/test_common.py::test_reset[tvm:tir-lstm]")
    jax: Any = Item("backends/test_common.py::test_reset[jax:jit-lstm]")
    assert items_of(["jax"], [outside, tvm, jax]) == [outside, jax]
    assert items_of(["jax", "tvm"], [outside, tvm, jax]) == [outside, tvm, jax]
    lost: Any = Item("backends/other/test_it.py::test_it")
    with pytest.raises(pytest.UsageError, match=r"no job runs tests/backends/other/test_it.+ and 0 others"):
        items_of(["jax"], [outside, lost])
