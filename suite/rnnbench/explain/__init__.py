"""What one trial's program is made of: behind `rnnbench explain`.

    explain    `explain_trial`: builds the trial in a worker, and gets what it found
    worker     that worker: stages, calls, files
    explained  the values that it sends
    show       `print_explained`

`rnnbench.backends.explanation` says what a runtime may show of its programs. An adapter that shows something has a
module of that name. `docs/explain.md` says what is shown.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.explain.explain import ExplainError, explain_trial
    from rnnbench.explain.explained import Explained
    from rnnbench.explain.show import print_explained, title_of

__getattr__, __all__ = lazy_names(__name__, __file__)
