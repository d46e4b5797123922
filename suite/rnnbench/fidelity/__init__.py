"""Fidelity: does `bound` cost what the runtime's own tool says? Behind `rnnbench doctor --fidelity`.

    measure  `measure_fidelity`: processes, rounds, verdicts
    worker   one process of a measurement
    table    `print_fidelity`

`rnnbench.backends.timing_tool` describes a runtime's own tool. An adapter that has one has a module of that name.
`docs/fidelity.md` has the figures.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.fidelity.measure import Fidelity, measure_fidelity
    from rnnbench.fidelity.table import print_fidelity

__getattr__, __all__ = lazy_names(__name__, __file__)
