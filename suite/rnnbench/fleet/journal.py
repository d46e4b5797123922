"""The journal of a run on a cluster. It is on the driver, so that no finished record is lost with a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rnnbench.fleet.cluster import FleetError
from rnnbench.fleet.messages import GroupDone, NodeFacts, TrialDone, decode_samples
from rnnbench.pipeline import Observer
from rnnbench.plan import RunPlan
from rnnbench.results import (
    Conditions,
    NodeInfo,
    RunInfo,
    append_record,
    fingerprint,
    machine_differences,
    read_run,
    save_samples,
    write_info,
)
from rnnbench.spelling import listed

NAMED_DIFFERENCES = 3
"""Differences of two machines that an error names."""


class FleetJournal:
    """Writes the records, samples and facts of nodes into a run's folder."""

    def __init__(self, plan: RunPlan, observer: Observer, *, timed: bool) -> None:
        run = read_run(plan.folder)
        self._folder = plan.folder
        self._observer = observer
        self._timed = timed
        self._info = run.info
        self._has_machine = bool(run.info.nodes or run.records)
        self.recorded: set[str] = set()
        """The ids of trials that got a record since this object was made."""
        self.measured: set[str] = set()
        """The ids of those trials among them that have a latency."""

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        return self._info.nodes

    def add_node(self, name: str, facts: NodeFacts) -> None:
        """Note a node that is going to measure. Raises FleetError if its latencies do not compare with the run's."""
        if self._timed and self._has_machine:
            self._require_same_machine(name, facts)
        node_info = self._info.nodes.get(name) or NodeInfo(machine={}, versions={})
        versions = {backend: dict(packages) for backend, packages in facts.suite.versions.items()}
        node = node_info.model_copy(update={"machine": facts.machine, "versions": versions})
        machine = self._info.machine if self._has_machine else facts.machine
        self._write(nodes={**self._info.nodes, name: node}, machine=machine)
        self._has_machine = True

    def write(self, node: str, done: TrialDone) -> None:
        """Append a trial's record, then its samples. Raises StoreError, and MessageError before anything is written."""
        samples = {path: decode_samples(text) for path, text in done.samples.items()}
        record = done.record.model_copy(update={"node": node, "run_seed": self._info.seed})
        append_record(self._folder, record)
        self.recorded.add(record.trial)
        if record.timing.latency:
            self.measured.add(record.trial)
        for path, rows in samples.items():
            save_samples(self._folder, record.trial, path, rows)
        self._observer.finished(record)

    def end_group(self, name: str, done: GroupDone) -> None:
        """Add the conditions and seconds of a completed group to its node's."""
        node = self._info.nodes[name]
        before, total = node.seconds.get("total", 0.0), done.seconds.get("total", 0.0)
        seconds = {
            key: node.seconds.get(key, 0.0) + done.seconds.get(key, 0.0) for key in {**node.seconds, **done.seconds}
        }
        conditions = _joined(node.conditions, before, done.conditions, total)
        node = node.model_copy(update={"seconds": seconds, "conditions": conditions})
        self._write(nodes={**self._info.nodes, name: node})

    def _require_same_machine(self, name: str, facts: NodeFacts) -> None:
        if fingerprint(facts.machine) == fingerprint(self._info.machine):
            return
        unlike = machine_differences(self._info.machine, facts.machine)
        differing = [f"{key}: {there}, and not {here}" for key, here, there in unlike]
        raise FleetError(
            f"node {name} is another machine than the one that this run was begun on "
            f"({listed(differing, NAMED_DIFFERENCES)}), and latencies of two machines do not compare; give nodes of "
            f"one kind a resource, choose them with --machine-class, and make a run for each kind"
        )

    def _write(self, **changes: object) -> None:
        self._info = self._info.model_copy(update=changes)
        write_info(self._folder, self._info)


def worker_seconds(before: Mapping[str, NodeInfo], after: Mapping[str, NodeInfo]) -> dict[str, float]:
    """The seconds that nodes spent between `before` and `after`, added up over nodes, without their wall time."""
    spent: defaultdict[str, float] = defaultdict(float)
    for name, node in after.items():
        spent_before = before[name].seconds if name in before else {}
        for key, value in node.seconds.items():
            spent[key] += value - spent_before.get(key, 0.0)
    spent.pop("total", None)
    return dict(spent)


def describe_nodes(info: RunInfo) -> str:
    """The wall time of the run, unless it has not ended, and the seconds that each node was at work."""
    nodes = [f"{name} {node.seconds.get('total', 0.0):.0f} s" for name, node in info.nodes.items()]
    total = f"{info.seconds['total']:.0f} s in total. " if info.finished else ""
    return f"{total}Nodes measured: {', '.join(nodes) or 'none'}."


def _joined(first: Conditions | None, first_s: float, last: Conditions | None, last_s: float) -> Conditions | None:
    """The conditions over two consecutive spans of time."""
    if first is None or last is None:
        return last or first
    steal = None
    if first.steal is not None and last.steal is not None and first_s + last_s > 0:
        steal = (first.steal * first_s + last.steal * last_s) / (first_s + last_s)
    heat = (first.temperature[0], last.temperature[1]) if first.temperature and last.temperature else None
    return Conditions(steal=steal, load=(first.load[0], last.load[1]), temperature=heat)
