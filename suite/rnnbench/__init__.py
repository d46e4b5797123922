"""rnnbench: how recurrent networks run in compilers and runtimes, measured and checked.

    import rnnbench

    case = rnnbench.load_case("cases/smoke.yaml")
    run = rnnbench.run(case, backends=["numpy"])
    for row in run.rows():
        print(row["trial"], row["outcome"], row["bound_median_s"])

`load_case` reads a case file, `make_case` makes a case from Python mappings. `run` and `check` give a `Run`, `read_run`
reads an older one. Its `rows()` are dictionaries, its `frame()` is a DataFrame; `docs/results.md` has the columns.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.api import check, plot, run
    from rnnbench.cases import Case, CaseError, load_case, make_case
    from rnnbench.results import Record, Run, StoreError, read_run

__version__ = "0.2.0"
__getattr__, __all__ = lazy_names(__name__, __file__)
