"""What an adapter returns, validated where it enters the suite: a third party may have written it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rnnbench.backends.base import (
    Allocated,
    Artifact,
    Backend,
    BuildError,
    CountsAllocations,
    Lack,
    OperationStage,
    PreparesBuilds,
    Probe,
    Program,
    ProgramFiles,
    Request,
    Signature,
    Support,
)
from rnnbench.model_files import ModelFileError
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.results import Outcome, is_lowered_form

Answer = TypeVar("Answer")
INT8_SHARE = 0.6
"""The most bytes of a program's files where int8 weights were requested, as a share of those of float32 weights. They
need a quarter, and some runtimes keep a second copy in their own layout."""
FURTHER_BYTES, OPERATION_BYTES = 1 << 16, 1 << 11
"""Bytes that a program may have besides its weights, and for each of its compiled operations: copies of the cell take
more than small weights do. OpenVINO was seen to take 1 KB an operation, the others less."""


class BackendError(ValueError):
    """There is no backend or route of that name, or it cannot be loaded. The message names the nearest one."""


class AdapterError(BackendError):
    """An adapter failed to answer: it raised, returned what is no answer, or ended its process. The message says so."""

    def __init__(self, message: str, outcome: Outcome = "run-failed") -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome
        """The outcome of its trials."""


class CheckedBackend:
    """A backend whose answers are validated. A program is validated by `check_program`, once its build was timed."""

    def __init__(self, name: str, adapter: Backend) -> None:
        self.name = name
        self._adapter = adapter

    def probe(self) -> Probe:
        """Raises AdapterError, and what asks the interpreter to exit."""
        return check_probe(self.name, self._answer("probe"))

    def support(self, request: Request) -> Support:
        """Raises AdapterError, and what asks the interpreter to exit."""
        return check_support(self.name, self._answer("support", request))

    def load(self) -> None:
        self._adapter.load()

    def build(self, request: Request, cache: Path) -> Program:
        """Raises BuildError, also for a user's file that changed or that cannot be read."""
        try:
            return self._adapter.build(request, cache)
        except ModelFileError as error:
            raise BuildError(str(error)) from error

    def allocated(self, device: str) -> Allocated | None:
        """None where the adapter counts nothing. Raises AdapterError, and what asks the interpreter to exit."""
        if not isinstance(self._adapter, CountsAllocations):
            return None
        return _validated(self.name, "allocated", lambda: _checked_count(self._answer("allocated", device)))

    def prepare_builds(self, route: str, device: str) -> None:
        """Raises AdapterError, and what asks the interpreter to exit."""
        if isinstance(self._adapter, PreparesBuilds):
            self._answer("prepare_builds", route, device)

    def _answer(self, method: str, *arguments: object) -> object:
        try:
            return getattr(self._adapter, method)(*arguments)
        except MemoryError:
            raise
        except Exception as error:
            raise AdapterError(f"the adapter of '{self.name}' failed to answer: {describe_error(error)}") from error


def check_probe(backend: str, answer: object) -> Probe:
    """The answer, as a probe. Raises AdapterError."""
    return _validated(backend, "probe", lambda: _checked_probe(answer))


def check_support(backend: str, answer: object) -> Support:
    """The answer, as one about support. Raises AdapterError."""
    return _validated(backend, "support", lambda: _checked_support(answer))


def check_program(backend: str, program: Program, request: Request, cache: Path) -> None:
    """Whether what `build` returned is a program, with files and an artifact that can be. Raises AdapterError."""
    _validated(backend, "build", lambda: _check_program(program, request, cache))


def _check_program(program: Program, request: Request, cache: Path) -> None:
    _expect(program, "signature", isinstance(getattr(program, "signature", None), Signature), "a Signature")
    _expect(program, "cached", isinstance(getattr(program, "cached", None), bool), "True or False")
    _expect(program, "open", callable(getattr(program, "open", None)), "a method")
    tail = getattr(program, "tail_build_s", None)
    is_time = tail is None or (isinstance(tail, float | int) and math.isfinite(tail) and tail >= 0)
    _expect(program, "tail_build_s", is_time, "None or seconds")
    artifact = getattr(program, "artifact", None)
    _expect(program, "artifact", isinstance(artifact, Artifact), "an Artifact")
    _check_files(getattr(program, "files", None), cache)
    checked = _revalidated(Artifact, artifact)
    if request.precision.weights == "int8":
        _check_int8(checked, program, request)
    if checked.nbytes < 0:
        raise ValueError(f"its artifact has {checked.nbytes} bytes")
    if not is_lowered_form(checked.lowered):
        raise ValueError(f"its artifact is lowered {checked.lowered!r}, which is no form that the suite knows")
    if checked.hoisted is not None and not 1 <= checked.hoisted <= request.strategy.chunk:
        raise ValueError(f"its artifact has hoisted {checked.hoisted}, which is not in 1..{request.strategy.chunk}")


def _check_int8(artifact: Artifact, program: Program, request: Request) -> None:
    """Whether a program that was requested with int8 weights has them, by what its adapter counted and by its size."""
    compiled = artifact.operations.get(OperationStage.COMPILED, {})
    if not artifact.int8_operations:
        raise ValueError("int8 weights were requested, and its artifact names no operation that multiplies by them")
    if missing := [name for name in artifact.int8_operations if not compiled.get(name)]:
        raise ValueError(f"its int8 operation {missing[0]!r} is none of its compiled operations")
    nbytes, weights = sum(path.stat().st_size for path in program.files.program), request.model.weight_count
    if nbytes > INT8_SHARE * 4 * weights + FURTHER_BYTES + OPERATION_BYTES * sum(compiled.values()):
        raise ValueError(
            f"int8 weights were requested, and its files have {nbytes:,} bytes for {weights:,} weights: as many as "
            "float32 takes"
        )


def _check_files(answer: object, cache: Path) -> None:
    files = _revalidated(ProgramFiles, answer)
    if not files.program:
        raise ValueError("its files have no program")
    for path in (*files.program, *files.identity):
        if not path.resolve().is_relative_to(cache.resolve()):
            raise ValueError(f"its file {path} is not under its cache")
        if not path.is_file():
            raise ValueError(f"its file {path} does not exist")


def _expect(program: object, attribute: str, is_right: bool, expected: str) -> None:
    if not is_right:
        value = getattr(program, attribute, None)
        raise TypeError(f"a {type(program).__name__} whose {attribute} is {type(value).__name__}, not {expected}")


def _checked_probe(answer: object) -> Probe:
    probe = _revalidated(Probe, answer)
    if not probe.routes:
        raise ValueError("it names no route")
    for route in probe.routes:
        if not route or not route.isprintable() or set(route) & set(" :,*/"):
            raise ValueError(f"{route!r} is no name of a route")
    versions = {safe_text(name): safe_text(version) for name, version in probe.versions.items()}
    lacking = {route: _safe_lack(lack) for route, lack in probe.lacking.items()}
    devices = {
        name: _safe_lack(device) if isinstance(device, Lack) else device for name, device in probe.devices.items()
    }
    not_on = {name: safe_text(why) for name, why in probe.not_on.items()}
    texts = {"reason": safe_text(probe.reason), "install": safe_text(probe.install), "not_on": not_on}
    return Probe(**{**vars(probe), **texts, "versions": versions, "lacking": lacking, "devices": devices})


def _checked_count(answer: object) -> Allocated | None:
    count = None if answer is None else _revalidated(Allocated, answer)
    if count is not None and min(count.now, 0 if count.peak is None else count.peak) < 0:
        raise ValueError(f"it counts {count.now} bytes, and {count.peak} at most")
    if count is not None and count.peak is not None and count.peak < count.now:
        raise ValueError(f"it counts {count.now} bytes now, and {count.peak} at most since the process began")
    return count


def _safe_lack(lack: Lack) -> Lack:
    return Lack(safe_text(lack.reason), safe_text(lack.install))


def _checked_support(answer: object) -> Support:
    support = _revalidated(Support, answer)
    for name, value in support.environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} is no variable of an environment")
    if support.interpreter and not os.access(support.interpreter, os.X_OK):
        raise ValueError(f"its interpreter {support.interpreter!r} cannot be run")
    texts = {"reason": safe_text(support.reason), "upstream": safe_text(support.upstream)}
    return Support(**{**vars(support), **texts})


def _revalidated(kind: type[Answer], answer: object) -> Answer:
    """The answer with every field of its declared type, however it was made."""
    if not isinstance(answer, kind):
        raise TypeError(f"{type(answer).__name__} instead of {kind.__name__}")
    hashable: Any = kind
    adapter = type_adapter(hashable)
    checked: Answer = adapter.validate_python(adapter.dump_python(answer, warnings=False))
    return checked


@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validated(backend: str, method: str, check: Callable[[], Answer]) -> Answer:
    try:
        return check()
    except KeyboardInterrupt:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except BaseException as error:  # noqa: BLE001 an attribute of a class from outside may raise anything
        wrong = describe_error(error)
    raise AdapterError(safe_text(f"the adapter of '{backend}' returned no valid answer from {method}: {wrong}"))
