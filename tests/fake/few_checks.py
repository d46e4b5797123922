"""A few checks instead of all, where nobody looks at what each of them finds: `conformance/` shows that.

All checks of a small trial take two thirds of what building and checking it costs, and its reference and the search for
moved work half of the rest. Workers must be forked (`forked_workers.py`): a started one has all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from rnnbench.conformance import suite
from rnnbench.conformance.array_files import ArrayStore, load_arrays, save_arrays
from rnnbench.worker.prepared_program import PreparedProgram

KEPT = ("values", "chunks", "bound")
"""They find an adapter that is wrong from its first call on, at its third step or in bound calls alone."""


def make_few_checks(patch: pytest.MonkeyPatch) -> None:
    """From now on the workers that are forked make these checks alone.

    A reference is computed once for all tests, and moved work is not looked for (`worker/test_moved_work.py`).
    """
    patch.setattr(suite, "CHECKS", tuple(check for check in suite.CHECKS if check.name in KEPT))
    patch.setattr(ArrayStore, "_compute_and_save", _computed_once(Path(_references().name)))
    patch.setattr(PreparedProgram, "moved_work", lambda _program, _call_s: iter(()))


@cache
def _references() -> TemporaryDirectory[str]:
    """The folder of this process, until it ends."""
    return TemporaryDirectory(prefix="rnnbench-test-")


def _computed_once(folder: Path) -> Callable[..., dict[str, np.ndarray]]:
    """`ArrayStore._compute_and_save`, with the arrays of any test that needed the same: a name tells what that is."""
    original = ArrayStore._compute_and_save

    def compute_and_save(
        store: ArrayStore, path: Path, key: Mapping[str, object], compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        computed = folder / path.name

        def once() -> dict[str, np.ndarray]:
            if computed.exists():
                return load_arrays(computed)
            arrays = compute()
            save_arrays(computed, arrays)
            return arrays

        return original(store, path, key, once)

    return compute_and_save
