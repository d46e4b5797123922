"""Dispatch: trial groups are sent to the nodes of a cluster as tasks, and their messages to the journal.

A group whose task dies is tried again only if nothing of it was measured. A trial that has a record is not run again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rnnbench.cases import Trial
from rnnbench.fleet.cluster import Cluster, FleetError, Node
from rnnbench.fleet.journal import FleetJournal
from rnnbench.fleet.messages import (
    GroupDone,
    GroupFailed,
    Message,
    MessageError,
    NodeFacts,
    StageBegun,
    TrialDone,
    decode,
)
from rnnbench.fleet.same_suite import SuiteFacts, unlike
from rnnbench.pipeline import Observer
from rnnbench.spelling import listed
from rnnbench.worker import waited

ATTEMPTS = 2
"""The most attempts for a group of which nothing was measured."""
PLACEMENTS = 10
"""The most tasks of a group that may be lost before they begin: Ray places tasks on a dead node until it notices."""
PATIENCE_S = 20.0
"""Seconds that a run waits for a node with the resources that it needs."""
LOOK_S = 1.0
"""Seconds between two looks for free nodes."""
MESSAGES_WAIT_S = 30.0
"""Seconds that a task waits for messages. It uses no processor time on its node meanwhile."""


@dataclass(frozen=True)
class Group:
    """Trials that one node measures."""

    trials: tuple[Trial, ...]
    attempt: int = 1
    placement: int = 1
    """The number of its tasks in this attempt. All but the last were lost before they began."""

    def __str__(self) -> str:
        return listed([trial.id for trial in self.trials], 1)


@dataclass(frozen=True)
class UnfinishedTrials:
    """Trials of one group that have no record, and why."""

    trials: tuple[Trial, ...]
    reason: str


@dataclass
class _Running:
    """A running task. `node` is None until the task has begun."""

    group: Group
    task: Any
    node: Node | None = None


class Dispatch:
    """The groups of one run: waiting, running and left. One thread uses it."""

    def __init__(
        self,
        cluster: Cluster,
        journal: FleetJournal,
        suite: SuiteFacts,
        observer: Observer,
        tell: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._suite = suite
        self._observer = observer
        self._tell = tell
        self._waiting: deque[Group] = deque()
        self._running: dict[Any, _Running] = {}
        """The running tasks, by the reference of the awaited reply."""
        self._left: list[UnfinishedTrials] = []
        self._offered: dict[str, str] = {}
        """The names of the nodes that offered what the run needs when it last looked, by id."""
        self._waits_since = time.monotonic()

    def run(
        self, groups: Sequence[Group], work_of: Callable[[Group], bytes], patience_s: float = PATIENCE_S
    ) -> list[UnfinishedTrials]:
        """Measure the groups, in this order. Returns the trials that could not be measured.

        At the end all tasks are ended, also after an exception. Raises FleetError if no node can be used, StoreError,
        and KeyboardInterrupt.
        """
        self._waiting.extend(groups)
        try:
            while self._waiting or self._running:
                self._start_tasks(work_of, patience_s)
                for reply in self._cluster.ready([*self._running], LOOK_S):
                    self._take(reply)
                waited()
        finally:
            for running in self._running.values():
                self._cluster.end(running.task)
        return self._left

    def _start_tasks(self, work_of: Callable[[Group], bytes], patience_s: float) -> None:
        """Start a task for each node, and one more that waits for the next node that becomes free or joins."""
        offering = self._cluster.offering()
        self._tell_lost(offering)
        self._require_progress(offering, patience_s)
        while self._waiting and len(self._running) <= len(offering):
            group = self._waiting.popleft()
            task, reply = self._cluster.start(work_of(group))
            self._running[reply] = _Running(group, task)

    def _tell_lost(self, offering: Sequence[Node]) -> None:
        """Name each node that is lost: one without a task would be missed by nobody."""
        now = {node.id: node.name for node in offering}
        for identity in self._offered.keys() - now.keys():
            self._tell(f"node {self._offered[identity]} was lost; left: {', '.join(now.values()) or 'none'}")
        self._offered = now

    def _require_progress(self, offering: Sequence[Node], patience_s: float) -> None:
        if any(running.node is not None for running in self._running.values()):
            self._waits_since = time.monotonic()
        if time.monotonic() - self._waits_since < patience_s:
            return
        if not offering:
            raise FleetError(self._cluster.missing())
        self._waits_since = time.monotonic()
        names = ", ".join(node.name for node in offering)
        self._tell(f"waiting for a task to begin: nodes {names} offer what it needs; Ray is slow, or others have it")

    def _take(self, reply: Any) -> None:
        """Process a reply. If it raises, its task is still in `_running`, and is ended with the others."""
        running = self._running[reply]
        ended = self._ended_by(running, reply)
        del self._running[reply]
        if ended is None:
            self._running[running.task.messages.remote(MESSAGES_WAIT_S)] = running
        else:
            self._settle(running, ended)

    def _ended_by(self, running: _Running, reply: Any) -> str | None:
        """Why the task has ended; None if it goes on."""
        try:
            value = self._cluster.get(reply)
        except Exception as error:  # noqa: BLE001 Ray raises many types of exceptions for a lost task
            return self._cluster.cause(error, running.node)
        try:
            return self._begun(running, *value) if running.node is None else self._went_on(running, value)
        except MessageError as error:
            return f"it sent something that is no message: {error}"

    def _begun(self, running: _Running, node_id: str, line: bytes) -> str | None:
        """Let a task that has begun on a node measure, if the node is fit. Returns why the task has ended, or None."""
        running.node = self._cluster.node(node_id)
        if running.node is None:
            return "its node was lost"
        facts = decode(line)
        if isinstance(facts, GroupFailed):
            return f"on node {running.node.name}: {facts.reason}"
        if not isinstance(facts, NodeFacts):
            raise MessageError("expected what the node is")
        self._admit(running.node, facts)
        running.task.measure.remote()
        return None

    def _admit(self, node: Node, facts: NodeFacts) -> None:
        """Raises FleetError if the node cannot measure trials of this run."""
        if differences := unlike(self._suite, facts.suite):
            raise FleetError(
                f"node {node.name} has another environment than the driver: {'; '.join(differences[:5])}; install "
                f"the same source of rnnbench and the same versions on every node (pip install -c constraints.txt)"
            )
        if facts.niceness > 0:
            raise FleetError(
                f"node {node.name} runs Ray's tasks with a niceness of {facts.niceness}, which they may not lower: any "
                f"other process would disturb what is measured; start it with RAY_worker_niceness=0 in its environment"
            )
        self._journal.add_node(node.name, facts)

    def _went_on(self, running: _Running, lines: Sequence[bytes]) -> str | None:
        for line in lines:
            message = decode(line)
            if isinstance(message, GroupDone | GroupFailed):
                return self._ended(running, message)
            self._note(running, message)
        return None

    def _note(self, running: _Running, message: Message) -> None:
        assert running.node is not None, "it has begun"
        of_group = {trial.id: trial for trial in running.group.trials}
        if isinstance(message, StageBegun) and message.trial in of_group:
            self._observer.stage(of_group[message.trial], message.stage)
        elif isinstance(message, TrialDone) and message.record.trial in of_group:
            if message.record.trial not in self._journal.recorded:
                self._journal.write(running.node.name, message)
        else:
            raise MessageError(f"a {type(message).__name__} that is none of its trials'")

    def _ended(self, running: _Running, message: GroupDone | GroupFailed) -> str:
        assert running.node is not None, "it has begun"
        if isinstance(message, GroupFailed):
            return f"on node {running.node.name}: {message.reason}"
        self._journal.end_group(running.node.name, message)
        return f"node {running.node.name} sent no record of them"

    def _settle(self, running: _Running, reason: str) -> None:
        """End a task. Its trials without a record are tried again, or left."""
        self._cluster.end(running.task)
        trials = tuple(trial for trial in running.group.trials if trial.id not in self._journal.recorded)
        if not trials:
            return
        if running.node is None and running.group.placement < PLACEMENTS:
            self._tell(f"{running.group}: {reason} before it began, so it is begun again")
            self._waiting.appendleft(replace(running.group, placement=running.group.placement + 1))
            time.sleep(LOOK_S)
            return
        rest = replace(running.group, trials=trials, attempt=running.group.attempt + 1, placement=1)
        is_measured = any(trial.id in self._journal.measured for trial in running.group.trials)
        if is_measured or rest.attempt > ATTEMPTS:
            self._left.append(UnfinishedTrials(trials, reason))
            self._tell(f"{rest}: no record: {reason}")
            return
        self._tell(f"{rest}: {reason}; nothing of the group was measured, so it is tried once more")
        self._waiting.appendleft(rest)
