"""Importing what only an extra installs, with an error that says which."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtraError(ImportError):
    """A package of an extra is not installed. The message says what needs it and what to install."""


def require(module: str, extra: str, purpose: str) -> Any:
    """The module; where its package is not installed, MissingExtraError. A package that is broken raises as it does."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A namespace such as `ruamel` may be there without the package that is wanted.
        if error.name not in (package, module):
            raise
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed; pip install 'rnnbench[{extra}]'", name=package
        ) from error
