"""Which of the functions or signatures of a file is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def entry_point(names: Sequence[str], main: str, takes_inputs: Callable[[str], bool]) -> str | None:
    """The one that is called `main`, or the only one, or the only one that takes inputs; None where several would do.

    Those without inputs only give a state to begin with.
    """
    if main in names:
        return main
    chosen = names if len(names) == 1 else [name for name in names if takes_inputs(name)]
    return chosen[0] if len(chosen) == 1 else None
