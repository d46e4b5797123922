"""Formats of model files. A format is one file or folder here, which declares a `FORMAT`.

A format says what is in a file (`describe`) and what the file gives (`oracle`). The rest of the suite works with what
these return, and asks nobody for the format. Adapters say in `Probe.reads` which formats their routes read.

To add a format, add a module or package with a `FORMAT` to this folder.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.model_files.formats.format import Format, Oracle
    from rnnbench.model_files.formats.registry import FORMATS, format_of, is_named_as_model

__getattr__, __all__ = lazy_names(__name__, __file__)
