"""Conformance: whether a program computes what its model says, in the timed path too.

`run_checks` runs the list `CHECKS` on a program, and compares it with the `ReferenceTrajectories` of its trial. These
are float64 runs of `rnn.run_reference`, kept in files for all trials that need the same. `TimedPath` and `PublicPath`
check the results of the timed calls. `expected_failure_results` compares the results with the expected failures. Checks
know sessions, not backends. `docs/conformance.md` describes each check, and `docs/tolerance.md` by how much results may
differ.

To add a check, write a function in the module of its subject, and add a `Check` to the tuple at the end of that module.
A check of a new subject gets a new module, whose tuple `suite.CHECKS` must join.

A name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.conformance.definition import Check, OpenSession
    from rnnbench.conformance.expected_failures import TrialEnd, expected_failure_results
    from rnnbench.conformance.garbage import freeze_for_good
    from rnnbench.conformance.kept_references import KeptReferences
    from rnnbench.conformance.ring_trajectory import RING
    from rnnbench.conformance.suite import (
        CHECK_NAMES,
        CHECK_SENTENCES,
        CHECKS,
        CHECKS_BY_NAME,
        TIMED,
        checks_without_result,
        run_checks,
    )
    from rnnbench.conformance.timed_path import PublicPath, TimedPath
    from rnnbench.conformance.tolerance import worst
    from rnnbench.conformance.trajectories import ReferenceTrajectories

__getattr__, __all__ = lazy_names(__name__, __file__)
