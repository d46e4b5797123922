"""A model file is read in a process of its own: what goes wrong there is a sentence here."""

from __future__ import annotations

import resource

import onnx_files as files
import pytest

from rnnbench.model_files import ModelFileError
from rnnbench.optional import MissingExtraError
from rnnbench.worker import describe_file, file_process
from rnnbench.worker.protocol import Failed
from rnnbench.worker.server import attempt


def test_a_file_is_described(tmp_path):
    description = describe_file(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))
    assert [pair.before for pair in description.state] == ["h0", "c0"]
    assert description.arrays[0].shape == ("T", "B", 3)


def test_a_file_that_is_refused_is_refused_here(tmp_path):
    (tmp_path / "network.onnx").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"network\.onnx: it is empty"):
        describe_file(tmp_path / "network.onnx")


def test_a_file_that_takes_too_much_memory_ends_its_own_process(tmp_path, monkeypatch):
    proto = files.recurrent("LSTM")
    for number in range(20_000):
        proto.graph.value_info.extend(files.arrays((f"value{number}", (1, 2, 3))))
    path = files.saved(proto, tmp_path / "network.onnx")
    describe_file(path)
    monkeypatch.setattr(file_process, "MEMORY", 40 << 20)
    with pytest.raises(ModelFileError, match=r"network\.onnx: reading it failed \((out-of-memory|crashed)\)"):
        describe_file(path)


@pytest.mark.parametrize(("limit", "outcome"), [(40 << 20, "out-of-memory"), (resource.RLIM_INFINITY, "run-failed")])
def test_a_function_that_ends_without_an_exception_had_no_memory_where_that_is_limited(monkeypatch, limit, outcome):
    """CPython has none left for the MemoryError then."""

    def ends() -> None:
        raise SystemError("<function _describe> returned NULL without setting an exception")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    assert attempt(ends, "run-failed") == Failed(
        outcome, "SystemError: <function _describe> returned NULL without setting an exception"
    )


def test_a_file_that_takes_too_long_ends_its_own_process(tmp_path, monkeypatch):
    monkeypatch.setattr(file_process, "READ_LIMIT_S", 0.01)
    with pytest.raises(
        ModelFileError, match=r"network\.onnx: reading it takes more than .* may be damaged, else export"
    ):
        describe_file(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))


def test_without_onnx_it_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['onnx'] = None\n")
    path = files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"), prepend=":")
    with pytest.raises(MissingExtraError, match=r"pip install 'rnnbench\[files\]'"):
        describe_file(path)
