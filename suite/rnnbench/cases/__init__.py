"""Cases: descriptions of what is run. A case becomes points, and a point on a backend becomes a trial.

Start with `load_case` (a YAML file) or `make_case` (Python mappings). Both validate everything, and raise a `CaseError`
that lists every problem with its place. `Case.trials` returns the trials on some targets. `select` selects some of
them. `every_pair` and `every_value` choose a few that still have all pairs of values, or all values.
`expected_failures_for` reads the expected failures. `docs/cases.md` has every key of a case file.

A name is imported when it is first used: each of the hundreds of workers of a run needs only `Trial`, and the rest
takes about 40 ms to import.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.cases.case import Case, check_case_names
    from rnnbench.cases.covering import every_pair, every_value
    from rnnbench.cases.errors import CaseError, Place, Problem
    from rnnbench.cases.expand import scalar
    from rnnbench.cases.expected_failures import (
        ExpectedFailure,
        expected_failures_for,
        expected_failures_of,
    )
    from rnnbench.cases.files import ANCHORS, case_files
    from rnnbench.cases.load import load_case, make_case
    from rnnbench.cases.matrix import MAX_TRIALS
    from rnnbench.cases.new_case import case_of_file, case_of_network, names_of_networks
    from rnnbench.cases.quantity import parse_duration, parse_share, parse_size
    from rnnbench.cases.schema import json_schema
    from rnnbench.cases.selection import select
    from rnnbench.cases.trial import STREAM, Launch, Lengths, Limits, Measure, Precision, State, Strategy, Target, Trial

__getattr__, __all__ = lazy_names(__name__, __file__)
