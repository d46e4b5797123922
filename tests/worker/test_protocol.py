"""Commands and replies are typed: what one end sends is what the other reads, and nothing else is accepted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness_trials import make_trial
from pydantic import ValidationError

from rnnbench.backends.base import Allocated, Artifact
from rnnbench.cases import Measure
from rnnbench.fidelity.worker import MeasureRounds, Round, Rounds, StartFidelity, ToolFacts
from rnnbench.measure.blocks import Block
from rnnbench.measure.disturbance import Disturbance
from rnnbench.measure.paths import BlockPlan
from rnnbench.measure.serving import Served
from rnnbench.pipeline.environment_worker import Describe, EnvironmentFacts
from rnnbench.plan import examine
from rnnbench.results.finding import Finding, FindingKind
from rnnbench.results.record import CheckResult
from rnnbench.sampling.roof import ReadRoof, RoofReading, StartRoof
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, WorkerState
from rnnbench.worker import commands, protocol
from rnnbench.worker.protocol import (
    BAD_MESSAGE,
    Command,
    Done,
    Failed,
    decode_command,
    decode_reply,
    encode_command,
    encode_reply,
)

TRIAL = make_trial(measure=Measure(settings={"cold": 1.0, "period": 0.01}))
BLOCK = commands.SentBlock(12.5, 3, np.array([1e-6, 2.5e-6, 3e-9]), 2, 0.5, Disturbance(1, 0.25, 0.0), 4)
SERVED = commands.SentServed(12.5, np.array([1e-3, 2.5e-3]), 300, 1, 0.5, 0.75, Disturbance(1, 0.25, 0.0))
ARTIFACT = Artifact(
    digest="d",
    source_digest="s",
    nbytes=10,
    operations={"compiled": {"add": 2}},
    lowered="looped 1",
    origin="authored",
    math="exact",
)
PASSED = CheckResult(verdict="pass", rounding=0.5)
STATE = WorkerState(3, (0, 1))
FAILED = CheckResult(verdict="fail", detail="off by 0.001", rounding=float("inf"))

EXCHANGES: list[tuple[Command, object]] = [
    (commands.Start("fake", Path("a"), Path("b"), (0, 1)), ImportFigures(1, 2, 0.5)),
    (commands.Build(TRIAL), BuildFigures("cold", 1.5, 0.25, 1 << 30, ("json", "json.decoder"))),
    (commands.Build(TRIAL), BuildFigures("cached")),
    (
        commands.Load(TRIAL),
        LoadFigures(None, 0.0, 0.5, 10, 9, ARTIFACT, {"a": 1.5}, allocated=Allocated(5, None), not_counted="why"),
    ),
    (commands.ComputeReference(TRIAL), commands.ReferenceFigures(12.5)),
    (commands.RunChecks(TRIAL), CheckResults({"values": PASSED, "chunks": FAILED}, None, 0.25, STATE)),
    (commands.Restore(TRIAL), Done()),
    (commands.Forget(TRIAL), Done()),
    (commands.Compare(TRIAL, TRIAL), commands.ComparedBlocks((1e-6, 2e-6), (1.5e-6,))),
    (commands.Prepare(TRIAL), commands.Prepared(PASSED, {"cold": "no cache can be emptied"})),
    (commands.SamplePath(TRIAL, "paced", BlockPlan(0.01, 4, False, 0.005)), BLOCK),
    (commands.SampleStateCopy(TRIAL, 0.004), BLOCK),
    (commands.OpenStreams(TRIAL, 64, 1 << 30), commands.OpenedStreams(32)),
    (commands.ServeFrames(TRIAL, 32, 300, 0.01), SERVED),
    (commands.ServeRequests(TRIAL, 500.0, 400, 7, 2.4), SERVED),
    (commands.CloseStreams(TRIAL), PASSED),
    (commands.TimeOnDevice(TRIAL), commands.DeviceTime({"device_time_per_step": 1e-6}, {"device_time": "no clock"})),
    (commands.Verify(TRIAL), commands.Verified(PASSED, STATE, 2, {"bound": ((10, 4096), (20, 0))}, {"files": 3.0})),
    (commands.Fork(("json",), (("eager", "cpu"),)), Done()),
    (commands.EndFork(), commands.ImportedModules(("json",))),
    (StartRoof((1024, 4096), "float32", "cpu", 1, (1,)), Done()),
    (ReadRoof(), RoofReading(((1024, 1e9), (4096, 5e8)), None)),
    (StartFidelity(TRIAL, Path("a"), (1,)), ToolFacts("a tool", "It sleeps.")),
    (MeasureRounds(6, 0.15), Rounds((Round(1e-6, 2e-6, 3e-7, 4e-7),))),
    (
        Describe((TRIAL, make_trial(time="fused"))),
        EnvironmentFacts("digest", "3.12.1", {"numpy": "2.0"}, (examine(TRIAL), examine(make_trial(time="fused")))),
    ),
]


@dataclass(frozen=True)
class Add(Command[Done]):
    """A command that no worker knows."""

    numbers: tuple[int, ...]


def same(one: object, other: object) -> bool:
    """Whether two messages are equal. Of arrays, the bytes are compared."""
    for kind, array in ((Block, "seconds"), (Served, "latencies")):
        if isinstance(one, kind) and isinstance(other, kind):
            fields, others = ({**vars(each), array: getattr(each, array).tobytes()} for each in (one, other))
            return fields == others
    return one == other


@pytest.mark.parametrize("command", [command for command, _ in EXCHANGES], ids=lambda command: type(command).__name__)
def test_a_command_is_read_as_it_was_sent(command):
    kind = type(command)
    assert decode_command(encode_command(command, 3), {kind.__name__: kind}) == (command, 3)


@pytest.mark.parametrize(("command", "reply"), EXCHANGES, ids=lambda message: type(message).__name__)
def test_a_reply_is_read_as_it_was_sent(command, reply):
    read = decode_reply(encode_reply(reply), command).reply
    assert type(read) is type(reply)
    assert same(read, reply)


def test_every_command_of_a_trial_s_worker_is_among_these():
    kinds = {kind for kind in vars(commands).values() if isinstance(kind, type) and issubclass(kind, Command)}
    assert kinds - {Command} <= {type(command) for command, _ in EXCHANGES}


def test_what_is_prepared_is_not_made_again(monkeypatch):
    monkeypatch.setattr(protocol, "_ADAPTERS", {})
    protocol.prepare_messages(type(command) for command, _ in EXCHANGES)
    monkeypatch.setattr(protocol, "TypeAdapter", None)
    for command, reply in EXCHANGES:
        kind = type(command)
        assert decode_command(encode_command(command), {kind.__name__: kind}) == (command, 0)
        assert same(decode_reply(encode_reply(reply), command).reply, reply)


def test_a_message_is_one_line():
    for command, reply in EXCHANGES:
        assert b"\n" not in encode_command(command)
        assert b"\n" not in encode_reply(reply)


def test_any_block_can_be_sent():
    block = Block(12.5, 3, np.array([1e-6, 2.5e-6, 3e-9]))
    command = commands.SampleStateCopy(TRIAL, 0.004)
    read = decode_reply(encode_reply(commands.SentBlock.of(block)), command).reply
    assert same(read, commands.SentBlock.of(block))
    assert read.seconds.tobytes() == block.seconds.tobytes()
    assert read.calls == block.calls == 6


@pytest.mark.parametrize("command", [command for command, _ in EXCHANGES], ids=lambda command: type(command).__name__)
def test_any_command_may_be_answered_with_a_failure(command):
    failed = Failed("crashed", "died of SIGSEGV")
    assert decode_reply(encode_reply(failed), command).reply == failed


@pytest.mark.parametrize(
    "reply", [CheckResult(verdict="pass"), BuildFigures("cold"), commands.ImportedModules(("json",))], ids=str
)
def test_a_reply_of_another_type_is_refused(reply):
    with pytest.raises(ValidationError):
        decode_reply(encode_reply(reply), commands.Load(TRIAL))


@pytest.mark.parametrize(
    "changed",
    [{"threads": "many"}, {"measure": 3}, {"model": {"cell": "lstm"}}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_command_with_a_field_of_another_type_is_refused(changed):
    message = json.loads(encode_command(commands.Load(TRIAL)))
    message["fields"]["trial"].update(changed)
    with pytest.raises(ValidationError):
        decode_command(json.dumps(message).encode(), {"Load": commands.Load})


def test_an_unknown_command_is_refused_by_its_name():
    with pytest.raises(KeyError, match="Add"):
        decode_command(encode_command(Add((1, 2))), {"Load": commands.Load})


def test_a_failure_with_an_unknown_outcome_is_refused():
    line = json.dumps({"number": 0, "failed": {"outcome": "odd", "reason": ""}}).encode()
    with pytest.raises(ValidationError):
        decode_reply(line, commands.Load(TRIAL))


def test_a_late_reply_to_an_earlier_command_is_refused():
    """Its type is right: two blocks of two trials are of one type."""
    for _, reply in EXCHANGES:
        with pytest.raises(ValueError, match="it answers command 3, and not 4"):
            decode_reply(encode_reply(reply, number=3), commands.EndFork(), 4)


IMPOSSIBLE = [
    (commands.Load(TRIAL), "steady", -1),
    (commands.Load(TRIAL), "run_peak", 1 << 60),
    (commands.Build(TRIAL), "peak", -1),
    (commands.ComputeReference(TRIAL), "seconds", -1e9),
    (commands.ComputeReference(TRIAL), "seconds", float("nan")),
    (commands.RunChecks(TRIAL), "reference_s", float("inf")),
    (commands.RunChecks(TRIAL), "tail_build_s", -1.0),
    (commands.RunChecks(TRIAL), "state", {"threads": -1, "affinity": []}),
    (commands.Compare(TRIAL, TRIAL), "first", []),
    (commands.Compare(TRIAL, TRIAL), "second", [1e-6, 0.0]),
    (commands.Compare(TRIAL, TRIAL), "second", [float("nan")]),
    (commands.Prepare(TRIAL), "unmeasured", {"bound": "no time"}),
    (commands.TimeOnDevice(TRIAL), "unmeasured", {"public": "no time"}),
    *((commands.SampleStateCopy(TRIAL, 0.1), "seconds", odd) for odd in (3, None, [1e-6], {"a": 1}, "AAAA", "é")),
    *((commands.ServeFrames(TRIAL, 1, 1, 0.1), "latencies", odd) for odd in (3, None, [1e-6], True)),
    (commands.OpenStreams(TRIAL, 4, 1), "streams", -1),
    (commands.Verify(TRIAL), "busy_threads", -1),
    (commands.Verify(TRIAL), "growth", {"bound": [[0, 4096]]}),
    (commands.Verify(TRIAL), "growth", {"bound": [[1, 1 << 80]]}),
]


@pytest.mark.parametrize(("command", "field", "value"), IMPOSSIBLE)
def test_a_reply_with_what_cannot_be_is_refused(command, field, value):
    """The suite computes with it: it divides by it, waits for it or adds it to the figures of a whole run."""
    reply = next(reply for other, reply in EXCHANGES if type(other) is type(command))
    message = json.loads(encode_reply(reply))
    assert field in message["reply"]
    message["reply"][field] = value
    with pytest.raises(BAD_MESSAGE):
        decode_reply(json.dumps(message).encode(), command)


def test_findings_travel_with_a_reply_and_with_a_failure():
    finding = Finding(kind=FindingKind.PROCESS, detail="left its working folder")
    for reply in (Failed("crashed", "odd"), commands.ImportedModules(())):
        assert decode_reply(encode_reply(reply, [finding]), commands.EndFork()).findings == (finding,)
