"""The cache of check results: a run that times a program reuses the results of an earlier run of the same program.

Results are kept only if no check failed and there was no finding, and only for the suite's own adapters. The suite does
not know what else decides the programs of other adapters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from pydantic import TypeAdapter, ValidationError

from rnnbench.backends import Request
from rnnbench.cases import Trial
from rnnbench.stages import CheckResults, WorkerState
from rnnbench.worker.kept_programs import KeptPrograms

KIND = "checks"
"""The kind of the cache's entries. Other kinds are the names of backends."""
RESULTS = "results"
"""The fact of an entry that has the results."""
Key = dict[str, object]


class KeptChecks:
    """The results of one backend's programs in the cache."""

    def __init__(self, programs: KeptPrograms) -> None:
        self._cache = programs.cache
        self._programs = programs

    def key(self, trial: Trial, request: Request, digest: str) -> Key:
        """Everything that decides the results: the program and its sources, the checks, and their reference."""
        times = {"endurance": trial.limits.endurance, "enough": trial.limits.enough}
        checks = {"trial": trial.params, **times, "suite": self._programs.suite_digest()}
        numpy = self._programs.package_digest("numpy")
        return {"program": digest, **checks, "numpy": numpy, **self._programs.key(request)}

    def read_sources(self) -> None:
        """Compute the digests that keys contain. A process that forks others calls this once for all of them."""
        self._programs.suite_digest()
        self._programs.package_digest("numpy")
        self._programs.look_at_sources()
        _results()

    def restore(self, key: Key, state: WorkerState) -> CheckResults | None:
        """The kept results, with this process's `state`; None if there are none."""
        entry = self._cache.find(KIND, key)
        if entry is None:
            return None
        try:
            kept = _results().validate_python(entry.facts.get(RESULTS))
        except ValidationError:
            return None
        return replace(kept, state=state, reference_s=0.0, checked=entry.made)

    def keep(self, key: Key, checked: CheckResults) -> None:
        """Keep the results if no check failed. Otherwise remove the results that are kept."""
        if any(result.verdict == "fail" for result in checked.results.values()):
            self.forget(key)
        elif self._programs.are_sources_unchanged():
            self._cache.keep(KIND, key, {}, {RESULTS: _results().dump_python(checked, mode="json")})

    def forget(self, key: Key) -> None:
        """Remove the kept results: the program does not always pass."""
        self._cache.forget(KIND, key)


@cache
def _results() -> TypeAdapter[CheckResults]:
    """Made when it is first needed: most workers check nothing."""
    return TypeAdapter(CheckResults)
