"""Whether the states of a file are states: they move, results depend on them, and two halves equal the whole.

An export can lose a state in silence. Its file then gives the same answer to two equal calls, and no comparison of
single calls shows that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rnnbench.model_files.description import FileDescription, option
from rnnbench.model_files.section import FileSection

CALLS_OF = (1, 8)
"""Steps of the calls that a new case makes of a file that leaves their number open."""
EQUAL = 1e-9
"""Largest difference of the halves and the whole in float64, relative to the largest value or 1."""
LARGE = 8.0
"""Factor of the inputs of a second comparison: a state may leave a range that only the end of a call keeps it in."""


@dataclass(frozen=True)
class StateCheck:
    """What calls of a file in float64 showed."""

    moved: dict[str, bool]
    """By state input: whether a call changes it: one of two of a stream, or another one from drawn states."""
    used: dict[str, bool]
    """By state input: whether one of these calls but the first gives something else if it is set to zero."""
    halves: float | None
    """Largest difference between two calls and one of as many steps, relative to the largest value or 1."""
    large_halves: float | None
    """The same with inputs LARGE times as large. None: not compared, or a result is not finite."""
    not_compared: str = ""
    """Why the halves were not compared."""
    made_sizes: dict[str, int] = field(default_factory=dict)
    """What the call had for `open_sizes`, and for the batch where one row was needed, as `array.axis`."""
    one_row: str = ""
    """Why a call of several rows failed, where one of one row did not."""
    failing_steps: dict[int, str] = field(default_factory=dict)
    """The numbers of steps of CALLS_OF of which a call fails, and why: inputs such as lengths may be of another one."""

    @property
    def lost(self) -> tuple[str, ...]:
        """States that no call changes, or that change nothing."""
        return tuple(name for name, moved in self.moved.items() if not (moved and self.used[name]))

    def why_lost(self, name: str) -> str:
        """What calls showed of a state that is lost."""
        return "no output depends on it" if self.moved[name] else "its next value never changes"

    @property
    def is_stream(self) -> bool:
        """Whether two halves equal the whole, as far as they were compared."""
        return all(halves is None or halves <= EQUAL for halves in (self.halves, self.large_halves))

    @property
    def is_stream_of_small(self) -> bool:
        """Whether two halves differ from the whole with large inputs alone."""
        return not self.is_stream and self.halves is not None and self.halves <= EQUAL

    @property
    def ok(self) -> bool:
        return not self.lost and self.is_stream


def open_sizes(description: FileDescription, section: FileSection) -> list[tuple[str, int]]:
    """Outputs with an axis whose size only a call shows: the caller chooses those of time and of the batch alone."""
    return [
        (array.name, axis)
        for array in description.of_role("output", "state_out")
        for axis, size in enumerate(array.shape or ())
        if array.name not in section.state.values()
        and not isinstance(size, int)
        and not (section.time is not None and axis in (section.time, array.time))
        and not (section.batch is not None and axis in (section.batch, array.batch))
    ]


def with_made_sizes(section: FileSection, check: StateCheck) -> FileSection:
    """The section with the sizes that only a call shows."""
    return replace(section, sizes={**section.sizes, **check.made_sizes})


def fault_of(check: StateCheck, description: FileDescription, section: FileSection) -> str:
    """Why a case of this section would be wrong, and how to mend it. Empty where the check is well."""
    if check.ok:
        return ""
    ways = {(pair.before, pair.after): pair.found for pair in description.state}
    pairs = {b: f"{b} → {a} ({ways.get((b, a), 'given')})" for b, a in section.state.items()}
    if not check.lost and check.is_stream_of_small:
        return _fault_of_large(check, description, section)
    if check.lost:
        wrong = "; ".join(f"the state {pairs[name]} is lost: {check.why_lost(name)}" for name in check.lost)
    else:
        wrong = f"two halves of a stream differ from the whole by {check.halves:.1e} with {', '.join(pairs.values())}"
    first = next(iter(check.lost or pairs))
    named, begun = option(f"state.{first}=OUTPUT"), option(f"constants.{first}=0")
    return (
        f"{wrong}; name the right output with {named}. If there is none, as in a bidirectional "
        f"network, begin each call anew with a constant for each such state: {begun}"
    )


def _fault_of_large(check: StateCheck, description: FileDescription, section: FileSection) -> str:
    assert section.time is not None, "without an axis of time no halves are compared"
    streams = [a for a in description.of_role("input") if a.name not in section.constants and a.shape is not None]
    sizes = {a.name: (a.shape or ())[section.time] for a in streams}
    opened = {size or f"{name}.{section.time}": 1 for name, size in sizes.items() if not isinstance(size, int)}
    answers = " ".join([option("time=null"), *(option(f"sizes.{name}=1") for name in opened)])
    return (
        f"with inputs {LARGE:g} times as large, two halves of a stream differ from the whole by "
        f"{check.large_halves:.1e}: a state leaves a range that only the end of a call keeps it in, as where it is "
        f"quantised there. Make each call one step ({answers}), or give the state a wider range"
    )
