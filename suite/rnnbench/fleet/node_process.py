"""The process on a node that measures one trial group, as `rnnbench run` or `rnnbench check` does on one machine.

It is not Ray's own process, which has Ray's threads and memory, a niceness of 15 and OMP_NUM_THREADS=1. The kernel ends
this process with the task, and its workers with this process.
"""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.fleet.messages import (
    GO,
    GroupDone,
    GroupFailed,
    GroupWork,
    Message,
    NodeFacts,
    StageBegun,
    TrialDone,
    decode_work,
    encode,
    encode_samples,
)
from rnnbench.fleet.same_suite import suite_facts
from rnnbench.measure import PATHS
from rnnbench.outside_text import describe_error
from rnnbench.pipeline import check_trials, run_trials, usable_cache
from rnnbench.plan import RunPlan, begin_run, close_adapters
from rnnbench.results import Record, Store, read_run, read_samples, samples_file
from rnnbench.worker import Channel, ChannelClosedError, die_with_parent, open_channel, own_folder


class Sender:
    """An observer that sends stages and finished trials to the driver."""

    def __init__(self, channel: Channel, run: Path) -> None:
        self._channel = channel
        self._run = run

    def send(self, message: Message) -> None:
        self._channel.send(encode(message))

    def stage(self, trial: Trial, stage: str) -> None:
        self.send(StageBegun(trial.id, stage))

    def finished(self, record: Record, side: str = "") -> None:
        """Send a record and its samples. The journal on this node has written both already."""
        paths = [path for path in PATHS if samples_file(self._run, record.trial, path).exists()]
        samples = {path: encode_samples(read_samples(self._run, record.trial, path)) for path in paths}
        self.send(TrialDone(record, samples))


def measure(work: GroupWork, channel: Channel, folder: Path) -> None:
    """Send this node's facts, and measure the group if the driver agrees. Raises ChannelClosedError if it ends."""
    plan = replace(begin_run(work.trials, Store(folder), work.expected_failures), seed=work.seed)
    info = read_run(plan.folder).info
    sender = Sender(channel, plan.folder)
    sender.send(NodeFacts(suite_facts(info.versions), info.machine, os.getpriority(os.PRIO_PROCESS, 0)))
    if channel.receive() != GO:
        return
    _carry_out(work, plan, sender)
    info = read_run(plan.folder).info
    sender.send(GroupDone(info.seconds, info.conditions))


def _carry_out(work: GroupWork, plan: RunPlan, sender: Sender) -> None:
    cache = usable_cache(print, reads=not work.rebuild)
    if work.timed:
        run_trials(plan, sender, cache=cache)
    else:
        check_trials(plan, sender, work.jobs, shrinks=False, cache=cache)


def main() -> None:
    """Measure one group. The first line of the channel is the work."""
    die_with_parent()
    channel = open_channel()
    with suppress(PermissionError):  # Ray's tasks have 15. The driver refuses a node that cannot lower it.
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    line = channel.receive()
    assert line is not None, "without a timeout a channel waits"
    with suppress(ChannelClosedError), own_folder() as folder:
        os.chdir(folder)
        try:
            measure(decode_work(line), channel, folder)
        except ChannelClosedError:
            raise
        except Exception as error:  # noqa: BLE001 every error is reported to the driver
            traceback.print_exc()
            channel.send(encode(GroupFailed(describe_error(error))))
        finally:
            close_adapters()


if __name__ == "__main__":
    main()
