"""A few checks instead of all, where nobody looks at what each of them finds: `conformance/` shows that.

All checks of a small trial take two thirds of what building and checking it costs. Workers must be forked
(`forked_workers.py`): a started one has all checks.
"""

from __future__ import annotations

import pytest

from rnnbench.conformance import suite

KEPT = ("values", "chunks", "bound")
"""They find an adapter that is wrong from its first call on, at its third step or in bound calls alone."""


def make_few_checks(patch: pytest.MonkeyPatch) -> None:
    """From now on the workers that are forked make these checks alone."""
    patch.setattr(suite, "CHECKS", tuple(check for check in suite.CHECKS if check.name in KEPT))
