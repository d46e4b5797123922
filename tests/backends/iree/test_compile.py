"""The compiler runs apart; its errors, its results and its cache come back."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import psutil
import pytest
from waiting import PATIENCE_S, ended, wait_until

from rnnbench.backends.base import BuildError
from rnnbench.backends.iree import IreeBackend, compile
from rnnbench.backends.iree.compile import compile_module
from rnnbench.backends.iree.hal_devices import HAL_DEVICES
from rnnbench.backends.iree.program import module
from rnnbench.backends.program_store import described

pytest.importorskip("iree.compiler")

FLAGS = HAL_DEVICES["cpu"].flags


def test_an_error_ends_with_what_the_compiler_said(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"exit status 1\n(.*\n)*.*tensor<not-a-type>") as caught:
        compile_module("module @rnn {\n  func.func @step(%x: tensor<not-a-type>) { return }\n}\n", FLAGS, tmp_path)
    assert "rnn.mlir:2:" in str(caught.value)


def test_a_compiler_that_dies_is_an_error_that_names_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "compiler"
    script.write_text("#!/bin/sh\nkill -SEGV $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(compile, "compiler", lambda: script)
    with pytest.raises(BuildError, match="SIGSEGV"):
        compile_module("module @rnn {}", FLAGS, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_compiler_dies_with_its_caller(tmp_path: Path) -> None:
    script = tmp_path / "compiler"
    script.write_text(f"#!/bin/sh\necho $$ > {quote(str(tmp_path))}/pid\nexec sleep 3600\n")
    script.chmod(0o755)
    code = (
        "import pathlib, rnnbench.backends.iree.compile as c\n"
        f"c.compiler = lambda: pathlib.Path({str(script)!r})\n"
        f"c.compile_module('module {{}}', {FLAGS!r}, pathlib.Path({str(tmp_path / 'cache')!r}))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    written = tmp_path / "pid"
    wait_until(lambda: written.exists() and written.read_text().strip() != "", "no compiler started")
    compiling = psutil.Process(int(written.read_text()))
    caller.send_signal(signal.SIGKILL)
    caller.wait(PATIENCE_S)
    wait_until(lambda: ended([compiling]), "the compiler outlived its caller")


def test_a_second_build_loads_the_first_ones_artifact(build: Any, request_of: Any, folder: Path) -> None:
    first = build()
    second = IreeBackend().build(request_of(), folder)
    assert second.cached
    assert second.artifact == first.artifact


@pytest.mark.proof
def test_other_weights_are_another_program(build: Any) -> None:
    programs = [build(input=size) for size in (5, 6)]
    artifacts = [described(program, programs[0].request) for program in programs]
    assert artifacts[0].digest != artifacts[1].digest


def test_other_flags_are_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is played by a function that writes an empty file."""
    monkeypatch.setattr(compile, "run_compiler", lambda folder, flags: (folder / "rnn.vmfb").write_bytes(b""))
    monkeypatch.setattr(compile, "_facts", lambda *_: {"operations": {}, "lowered": "fused"})
    others = (*FLAGS, "--another")
    assert len({compile_module("module {}", flags, tmp_path).path for flags in (FLAGS, others)}) == 2


def test_the_artifact_describes_the_file(build: Any, folder: Path) -> None:
    program = build()
    artifact = described(program, program.request)
    (file,) = program.files.program
    assert (file.parent, file.suffix, artifact.nbytes) == (folder, ".vmfb", file.stat().st_size)
    assert artifact.operations["input"]["linalg.matmul"] == 2
    assert artifact.operations["compiled"]["dispatch"] >= 3
    assert "--iree-llvmcpu-target-cpu=host" in artifact.flags
    assert (artifact.origin, artifact.math) == ("authored", "exact")


@pytest.mark.proof
def test_looking_at_the_program_does_not_change_it(build: Any, request_of: Any, tmp_path: Path) -> None:
    (tmp_path / "rnn.mlir").write_text(module(request_of()))
    command = [str(compile.compiler()), "rnn.mlir", "-o", "rnn.vmfb", *compile.flags_of(request_of())]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=PATIENCE_S)
    assert (tmp_path / "rnn.vmfb").read_bytes() == build().files.program[0].read_bytes()
