"""The worker that measures the device's roof on command."""

from __future__ import annotations

import os

from rnnbench.devices import KINDS, RoofMeasurer, UnmeasuredError
from rnnbench.sampling.roof import ReadRoof, RoofReading, StartRoof
from rnnbench.worker import Done, Failed, run_worker


class RoofProbing:
    """Carries out the commands, the first of which says what to measure."""

    def __init__(self) -> None:
        self._probe: RoofMeasurer

    def start(self, command: StartRoof) -> Done | Failed:
        os.sched_setaffinity(0, command.affinity)
        make = KINDS[command.device].measure_roof
        assert make is not None, "it is not started where the kind of device has no roof"
        try:
            self._probe = make(command.working_sets, command.dtype, command.threads)
        except UnmeasuredError as error:
            return Failed("unavailable", str(error))
        return Done()

    def read(self, command: ReadRoof) -> RoofReading | Failed:
        try:
            return RoofReading.of(self._probe.measure())
        except UnmeasuredError as error:
            return Failed("unavailable", str(error))


def main() -> None:
    probing = RoofProbing()
    run_worker({StartRoof: probing.start, ReadRoof: probing.read})


if __name__ == "__main__":
    main()
