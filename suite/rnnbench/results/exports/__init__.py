"""Exports: a run in other formats. A format is one file here, which declares one `Export`.

To add a format, add a module with an `EXPORT` to this folder. `rnnbench export --format=NAME` then offers it.
The formats that show figures take them from `measured`.
"""

from rnnbench.results.exports.export import BinaryExport, Export, FolderExport
from rnnbench.results.exports.formats import EXPORTS

__all__ = ["EXPORTS", "BinaryExport", "Export", "FolderExport"]
