"""Exports: a run's rows in other formats. A format is one file here, which declares one `Export`.

To add a format, add a module with an `EXPORT` to this folder. `rnnbench export --format=NAME` then offers it.
"""

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.formats import EXPORTS

__all__ = ["EXPORTS", "Export"]
