"""The probe's seat among trials that are sampled in turn: it looks at the machine in the same rounds as they do."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence

from rnnbench.measure.roof import Roof
from rnnbench.results.artifact import Artifact
from rnnbench.rnn.cost import Cost, call_cost
from rnnbench.rnn.dtypes import DTYPES
from rnnbench.run.account import Account
from rnnbench.run.prepare import Findings, affinity
from rnnbench.run.process import Workplace
from rnnbench.run.wire import Message, Wire, WireClosedError

LOOKS = 6
"""Times that the probe looks beside one process of the trials: in its first rounds."""
ANSWER_S = 60.0
"""Longest that the probe may take to start, or for one look; its largest buffers take a second or two to fill."""


def cost_of(findings: Findings) -> Cost:
    """What one call of the trial's program must read and do, by what the program declares."""
    trial = findings.trial
    # Precisions that are no type of their own here (int8) are weights of one byte; sessions exchange float32 for them.
    dtype = DTYPES.get(trial.dtype)
    weight_bytes, value_bytes = (dtype.itemsize, dtype.itemsize) if dtype else (1, 4)
    hoisted = _hoisted(findings.artifact)
    return call_cost(trial.model, trial.strategy.chunk, trial.batch, weight_bytes, value_bytes, hoisted)


def _hoisted(artifact: Artifact | None) -> int | None:
    return artifact.hoisted if artifact else None


class RoofSeat:
    """The probe's process beside one process of each trial. What it saw is left in their findings."""

    def __init__(self, trials: Sequence[Findings], workplace: Workplace, account: Account, log: str) -> None:
        self._account = account
        self._looks: list[Roof] = []
        self._lacking = ""
        for findings in trials:
            findings.roofs.append(self._looks)
        self._trials = trials
        trial = trials[0].trial
        ours, theirs = socket.socketpair()
        workplace.logs.mkdir(parents=True, exist_ok=True)
        with theirs, (workplace.logs / log).open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rnnbench.run.roof_worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._wire = Wire(ours)
        readings = (reading for findings in trials for reading in cost_of(findings).readings)
        hello = {
            "working_sets": sorted({reading.working_set for reading in readings}),
            "dtype": trial.dtype,
            "threads": trial.threads,
            "affinity": affinity(trial.threads),
        }
        self._ask(hello)

    def ready(self) -> None:
        """Wait until the probe is compiled, or is known to lack something."""
        self._answer()

    def look(self) -> None:
        """One look, unless there have been enough."""
        if self._lacking or len(self._looks) >= LOOKS:
            return
        with self._account.spent("sample"):
            self._ask({})
            seen = self._answer()
        if seen is not None:
            self._looks.append(Roof(dict(map(tuple, seen["bandwidth"])), seen["rate"]))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._wire.close()

    def _ask(self, message: Message) -> None:
        try:
            self._wire.send(message)
        except WireClosedError:
            self._note_lack("the probe's process has ended; its log says why")

    def _answer(self) -> Message | None:
        if self._lacking:
            return None
        try:
            reply = self._wire.receive(ANSWER_S)
        except WireClosedError:
            self._note_lack("the probe's process has ended; its log says why")
            return None
        if reply is None:
            self._note_lack(f"the probe gave no answer within {ANSWER_S:g} s")
        elif "lacking" in reply:
            self._note_lack(reply["lacking"])
            return None
        return reply

    def _note_lack(self, reason: str) -> None:
        self._lacking = reason
        for findings in self._trials:
            findings.no_roof = reason
