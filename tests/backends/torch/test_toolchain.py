"""What Inductor is asked beforehand: the questions must be those of a build, to the last option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.backends.torch.inductor import inductor_in, share_machine_files
from rnnbench.backends.torch.toolchain import prepare_builds
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

codecache = pytest.importorskip("torch._inductor.codecache")
cpu_vec_isa = pytest.importorskip("torch._inductor.cpu_vec_isa")
joint_graph = pytest.importorskip("torch._inductor.fx_passes.joint_graph")

Question = tuple[tuple[Any, ...], dict[str, Any]]


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["compile", "aoti"])
def test_the_headers_and_patterns_of_a_build_are_those_that_were_asked_for_beforehand(
    route: str, workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build ends where it would compile the program: it has asked by then."""
    ask, compile_source, questions = codecache._precompile_header, codecache.CppBuilder.build, list[Question]()

    def asked(*arguments: Any, **options: Any) -> str:
        questions.append((arguments, options))
        with monkeypatch.context() as patch:
            patch.setattr(codecache.CppBuilder, "build", compile_source)
            path: str = ask(*arguments, **options)
        return path

    def end(_: Any) -> None:
        raise RuntimeError("the program itself")

    monkeypatch.setattr(codecache, "_precompile_header", asked)
    prepare_builds(route)
    asked_beforehand = questions.copy()
    questions.clear()
    traced = joint_graph.lazy_init.cache_info().misses
    monkeypatch.setattr(codecache.CppBuilder, "build", end)
    with pytest.raises(BuildError, match="the program itself"):
        build(route, workshop.inductor)
    assert questions, "the build asked for no header: Inductor asks in another way now"
    assert [question for question in questions if question not in asked_beforehand] == []
    assert joint_graph.lazy_init.cache_info().misses == traced, "a build traces the patterns for another device"


def test_precompiled_headers_outlive_the_worker_that_has_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("_HEADER_DIR", "_HEADER_LOCK_DIR"):
        monkeypatch.setattr(codecache, name, getattr(codecache, name))
    monkeypatch.setenv("RNNBENCH_USERS_TMPDIR", str(tmp_path))
    share_machine_files()
    codecache.write(content="", extension="h", specified_dir=codecache._HEADER_DIR)
    (header,) = tmp_path.glob("torchinductor_*/precompiled_headers/*.h")
    assert Path(codecache._HEADER_LOCK_DIR) == header.parent / "locks"


def test_vectors_are_tried_in_a_folder_that_outlives_the_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RNNBENCH_USERS_TMPDIR", str(tmp_path))
    monkeypatch.setattr(cpu_vec_isa.VecISA, "_probe_load", lambda isa, program: bool(programs.append(Path(program))))
    monkeypatch.setattr(codecache.CppBuilder, "build", lambda builder: None)
    programs = list[Path]()
    with inductor_in(tmp_path / "store"):
        cpu_vec_isa.VecAVX2().check_build(cpu_vec_isa.VecISA._avx_code)
    (program,) = programs
    assert program.is_relative_to(next(tmp_path.glob("torchinductor_*")))


def build(route: str, cache: Path) -> None:
    """A program whose size no other test has, so that no cache has it."""
    model = Model(cell="gru", input=3, hidden=11)
    weights = draw_weights(model, 0, "float32")
    request = Request(route, model, weights, Strategy("unrolled", "stitched", 2), 1, Precision.of("float32"))
    TorchBackend().build(request, cache)
