"""The state of a device around the blocks of a trial, as figures of its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.measure import DeviceConditions, DeviceSpell
from rnnbench.results import DeviceState
from rnnbench.stages import Sampled


def device_state(sampled: Sampled) -> DeviceState | None:
    """The device's state over all blocks of all processes; None if the device reports nothing."""
    blocks = [block for samples in sampled.paths.values() for process in samples.processes for block in process]
    spells = [block.device for block in blocks if block.device is not None]
    if not spells:
        return None
    return DeviceState(
        clock=_range(spells, lambda now: now.clock),
        temperature=_range(spells, lambda now: now.temperature),
        power=_range(spells, lambda now: now.power),
        moved_blocks=sum(spell.clock_moved for spell in spells),
        throttled=tuple(dict.fromkeys(reason for spell in spells for reason in spell.throttled)),
        throttled_blocks=sum(bool(spell.throttled) for spell in spells),
        others=tuple(dict.fromkeys(other for spell in spells for other in spell.others)),
        shared_blocks=sum(bool(spell.others) for spell in spells),
    )


def _range(
    spells: Sequence[DeviceSpell], figure: Callable[[DeviceConditions], float | None]
) -> tuple[float, float] | None:
    values = [figure(now) for spell in spells for now in (spell.before, spell.after)]
    reported = [value for value in values if value is not None]
    return (min(reported), max(reported)) if reported else None
