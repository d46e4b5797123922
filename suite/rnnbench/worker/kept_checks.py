"""Results of the conformance checks that earlier runs made of the same program, for runs that time it.

They are kept where no check has failed and nothing was found, and only of the suite's own adapters. The suite does not
know what else decides the programs of others.
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
"""Of the entries, beside those of backends."""
RESULTS = "results"
"""What an entry says of the checks."""
Key = dict[str, object]


class KeptChecks:
    """The results of one backend's programs in the cache."""

    def __init__(self, programs: KeptPrograms) -> None:
        self._cache = programs.cache
        self._programs = programs

    def key(self, trial: Trial, request: Request, digest: str) -> Key:
        """All that decides the results: the program's digest, what made it, the checks, and what they compare with."""
        times = {"endurance": trial.limits.endurance, "enough": trial.limits.enough}
        checks = {"trial": trial.params, **times, "suite": self._programs.suite_digest()}
        numpy = self._programs.package_digest("numpy")
        return {"program": digest, **checks, "numpy": numpy, **self._programs.key(request)}

    def read_sources(self) -> None:
        """Read the files whose digests keys have: once in a process that forks others, and not in each of them."""
        self._programs.suite_digest()
        self._programs.package_digest("numpy")
        self._programs.look_at_sources()
        _results()

    def restore(self, key: Key, state: WorkerState) -> CheckResults | None:
        """The results, for a process in this state; None where there are none."""
        entry = self._cache.find(KIND, key)
        if entry is None:
            return None
        try:
            kept = _results().validate_python(entry.facts.get(RESULTS))
        except ValidationError:
            return None
        return replace(kept, state=state, reference_s=0.0, checked=entry.made)

    def keep(self, key: Key, checked: CheckResults) -> None:
        """Keep results of which none has failed; otherwise forget those that there are."""
        if any(result.verdict == "fail" for result in checked.results.values()):
            self.forget(key)
        elif self._programs.are_sources_unchanged():
            self._cache.keep(KIND, key, {}, {RESULTS: _results().dump_python(checked, mode="json")})

    def forget(self, key: Key) -> None:
        """The program has shown that it does not always pass."""
        self._cache.forget(KIND, key)


@cache
def _results() -> TypeAdapter[CheckResults]:
    """Made when it is first needed: most workers check nothing."""
    return TypeAdapter(CheckResults)
