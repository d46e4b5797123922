"""What an adapter says of its builds counts where it agrees with the files; what is damaged is never loaded.

The adapter here is one class whose honest behaviour a test replaces in one place.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import check_trial, context_in, make_trial
from honest_adapter import HonestProgram, HonestSession
from rnnbench_fake import STORE

from rnnbench.backends import request_of, sources_digest
from rnnbench.backends.answers import AdapterError
from rnnbench.backends.base import Allocated, ProgramFiles
from rnnbench.backends.program_store import ProgramStore, described
from rnnbench.backends.shared import of_one_step
from rnnbench.cache import CacheFolder
from rnnbench.cases import Precision
from rnnbench.model_files import FileNetwork
from rnnbench.pipeline.build_and_check import build, check, import_framework, load
from rnnbench.pipeline.same_programs import SamePrograms, agree
from rnnbench.plan import examine
from rnnbench.rnn.weights import draw_weights
from rnnbench.worker import tail_builds
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.kept_programs import later
from rnnbench.worker.launcher import WorkerError
from rnnbench.worker.tail_builds import TailBuilds
from rnnbench.worker.trial_process import log_name, start_trial_worker
from rnnbench.worker.trial_programs import CHECKING, LOADING, TrialPrograms, folder_of

pytestmark = pytest.mark.usefixtures("few_checks")

TRIAL = make_trial()
REQUEST = request_of(TRIAL, draw_weights(TRIAL.model, TRIAL.seed))
STEP = {"x": np.zeros((1, TRIAL.batch, TRIAL.model.input), np.float32)}


class Adapter:
    """Leaves a folder for each chunk, and says of it what it is."""

    name = "adapter"

    def __init__(self, **lies):
        self.lies = lies
        self.builds = 0

    def build(self, request, cache):
        folder = cache / f"chunk-{request.strategy.chunk}"
        files = [folder / "code.bin", folder / "weights.bin", folder / "facts.json"]
        cached = all(file.exists() for file in files) or "no files" in self.lies
        if not cached or "builds again" in self.lies:
            self.builds += 1
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                file.write_text(f"{file.name} of {request.strategy!r}")
        for name in self.lies.get("writes", ()):
            (cache / name).write_text(f"{time.time_ns()}")
        program = LyingProgram(request, "0" * 64, cached, lambda: self.build(of_one_step(request), cache))
        program.lies = self.lies
        program.files = self.lies.get("files", lambda cache: ProgramFiles(tuple(files[:2])))(cache)
        program.cached = self.lies.get("cached", program.cached)
        program.artifact = program.artifact.model_copy(update=self.lies.get("artifact", {}))
        return program


class LyingProgram(HonestProgram):
    lies: dict = {}  # noqa: RUF012

    def tail(self):
        begun = self._tail is None
        until = time.process_time() + self.lies.get("tail takes", 0.0)
        while begun and time.process_time() < until:
            continue
        if begun:
            self.lies.get("tail does", int)()
        tail = super().tail()
        if begun and "tail said" in self.lies:
            self.tail_build_s = self.lies["tail said"]
        return tail

    def open(self):
        for path in self.lies.get("opening writes", ()):
            path.write_text("compiled at last")
        return HonestSession(self)


class Worker:
    """Programs of a worker of its own in the same store."""

    def __init__(self, folder, adapter, programs=""):
        self.adapter = adapter
        self.store = ProgramStore(folder)
        self.programs = TrialPrograms(adapter, self.store, programs, FindingLog())

    def build(self, trial=TRIAL, request=REQUEST):
        before = self.programs.begin_build(trial, request)
        return self.programs.end_build(trial, request, self.programs.build(request), before)

    def load(self, trial=TRIAL, request=REQUEST):
        with self.programs.watched(trial, LOADING):
            return self.programs.load(trial, request)

    def found(self):
        return [finding.detail for finding in self.programs.findings.take()]


def test_an_honest_adapter_is_accused_of_nothing(tmp_path):
    first = Worker(tmp_path, Adapter())
    assert first.build() == "cold"
    program = first.load()
    with first.programs.watched(TRIAL, CHECKING):
        seen = first.programs.time_tail(TRIAL, STEP)
    assert first.programs.tail_build_s(TRIAL, seen) == program.tail_build_s
    second = Worker(tmp_path, Adapter())
    assert second.build() == "cached"
    second.load()
    assert (first.found(), second.found(), second.adapter.builds) == ([], [], 0)


def test_what_other_sources_built_is_not_used(tmp_path):
    first = Worker(tmp_path, Adapter(), folder_of("adapter", "sources before"))
    assert (first.build(), first.build()) == ("cold", "cached")
    edited = Worker(tmp_path, Adapter(), folder_of("adapter", "sources after"))
    assert edited.build() == "cold"
    edited.load()
    assert (edited.adapter.builds, edited.found()) == (1, [])


def test_the_suite_s_own_adapters_have_folders_of_their_own():
    """Their sources are the same: those of all of them."""
    assert sources_digest("numpy") == sources_digest("jax")
    assert folder_of("numpy", sources_digest("numpy")) != folder_of("jax", sources_digest("jax"))


ON_A_DEVICE = dataclasses.replace(TRIAL, device="cuda")


class Counting(Adapter):
    """Counts what is next, or fails to where that is an error."""

    def __init__(self, *counts):
        super().__init__()
        self.counts = list(counts)

    def allocated(self, device):
        count = self.counts.pop(0)
        if isinstance(count, Exception):
            raise count
        return count


def test_a_device_s_memory_is_what_was_added_since_the_count_before(tmp_path):
    programs = Worker(tmp_path, Counting(Allocated(100, 300), Allocated(150, 400), Allocated(90, 400))).programs
    before = programs.allocated(ON_A_DEVICE)
    assert programs.allocated(ON_A_DEVICE, before) == Allocated(50, 300)
    assert programs.allocated(ON_A_DEVICE, before) is None
    assert programs.allocated(TRIAL) is None
    assert Worker(tmp_path, Adapter()).programs.allocated(ON_A_DEVICE) is None


def test_a_count_that_fails_is_a_sentence_before_and_after_and_harms_no_program(tmp_path):
    fails = AdapterError("no count")
    programs = Worker(tmp_path, Counting(fails, Allocated(1, 1), fails)).programs
    before = programs.allocated(ON_A_DEVICE)
    assert before == "no count"
    assert programs.allocated(ON_A_DEVICE, before) == "no count"
    assert programs.allocated(ON_A_DEVICE) == Allocated(1, 1)
    assert programs.allocated(ON_A_DEVICE, Allocated(1, 1)) == "no count"


@pytest.mark.parametrize(
    ("lies", "origin", "words"),
    [
        ({"cached": True}, "cold", "says that it was in the cache, and wrote chunk-4/code.bin and 2 more"),
        ({"builds again": True, "cached": True}, "cold", "says that it was in the cache, and wrote"),
    ],
    ids=["fresh", "always"],
)
def test_a_build_that_says_cached_and_wrote_counts_as_cold(tmp_path, lies, origin, words):
    worker = Worker(tmp_path, Adapter(**lies))
    assert worker.build() == origin
    (found,) = worker.found()
    assert words in found


def test_a_build_that_says_cold_and_wrote_nothing_counts_as_cached(tmp_path):
    Worker(tmp_path, Adapter()).build()
    worker = Worker(tmp_path, Adapter(cached=False))
    assert worker.build() == "cached"
    assert "not in the cache, and wrote nothing" in worker.found()[0]


def test_a_program_that_every_load_builds_again_is_told(tmp_path):
    worker = Worker(tmp_path, Adapter(**{"builds again": True, "cached": False}))
    worker.build()
    worker.load()
    assert worker.found() == ["a second build does not use what the first one left, and builds again"]


@pytest.mark.proof
def test_a_build_that_uses_a_store_of_its_own_is_told_and_not_kept_for_later_runs(tmp_path, monkeypatch):
    """The second run builds in no time, since the first one has left its work there."""
    monkeypatch.setenv(STORE, str(tmp_path))
    kept = CacheFolder(tmp_path / "cache", 1 << 30)
    trial = make_trial("fake:build-keeps-a-store")
    for run, did in (("first", "wrote"), ("second", "read"), ("third", "read")):
        context = context_in(tmp_path / run)
        context = dataclasses.replace(context, folders=dataclasses.replace(context.folders, cache=kept))
        checked = check_trial(trial, context)
        assert checked.failure is None
        assert checked.built.figures.origin == "cold"
        (told,) = [finding.detail for finding in checked.findings]
        assert told.startswith(f"the build {did} {tmp_path}/")
        assert told.endswith("outside of the run's folders: files there may make a build cheap")
    honest = check_trial(make_trial(), context_in(tmp_path / "honest"))
    assert honest.findings == ()


def test_files_beside_a_user_s_model_are_not_outside(tmp_path):
    """Its weights may lie there."""
    model = object.__new__(FileNetwork)
    object.__setattr__(model, "path", "/home/user/model.onnx")
    left_out = []
    files = SimpleNamespace(seen=lambda inside: left_out.append(inside) or ((), ()))
    programs = Worker(tmp_path, Adapter()).programs
    for one in (model, TRIAL.model):
        assert list(programs.outside_findings(files, SimpleNamespace(model=one))) == []
    assert left_out == [[tmp_path, Path("/home/user")], [tmp_path]]


@pytest.mark.parametrize("doing", [LOADING, CHECKING])
def test_a_build_that_is_hidden_outside_of_build_is_told(tmp_path, doing):
    hidden = tmp_path / "programs" / "hidden.so"
    worker = Worker(tmp_path, Adapter(**{"opening writes": [hidden]}))
    worker.build()
    program = worker.load()
    assert worker.found() == []
    with worker.programs.watched(TRIAL, doing):
        program.open()
    assert worker.found() == [f"while it was {doing}, hidden.so was written into the cache: work of the build"]


OF_ONE_STEP = make_trial(chunk=1)


class SideBySide:
    """A trial of one step by one adapter, and one whose first ragged call builds by another. One store has both."""

    def __init__(self, folder, lies=None, tail_lies=None):
        self.trial = Worker(folder, Adapter(**lies or {}), "one")
        self.beside = Worker(folder, Adapter(**tail_lies or {}), "other")
        request = of_one_step(REQUEST)
        self.trial.build(OF_ONE_STEP, request)
        self.program = self.trial.load(OF_ONE_STEP, request)
        self.beside.build()
        self.beside.load()
        assert self.trial.found() == self.beside.found() == []

    def build_tail(self):
        with self.beside.programs.watched(TRIAL, CHECKING):
            self.beside.programs.time_tail(TRIAL, STEP)

    def tail_is_built(self):
        return TailBuilds(self.beside.store, "other").noted(TRIAL)

    def checked(self, seconds=math.inf):
        return self.trial.programs.watched(OF_ONE_STEP, CHECKING, seconds)

    def listed(self):
        """The names of the files on the lists of what each wrote later."""
        store = self.trial.store
        return [{path.name for path in store.listed(later(trial)).values()} for trial in (OF_ONE_STEP, TRIAL)]


TAIL_FILES = {"code.bin", "weights.bin", "facts.json"}
FOUND = "while it was checked, {} was written into the cache: work of the build"


def test_a_trial_is_not_accused_of_the_tail_that_another_one_builds_beside_it(tmp_path):
    both = SideBySide(tmp_path)
    with both.checked():
        both.build_tail()
    assert both.trial.found() == both.beside.found() == []
    assert both.listed() == [set(), TAIL_FILES]


def test_a_trial_that_looks_while_a_tail_is_built_waits_for_it(tmp_path, monkeypatch):
    both, naps = SideBySide(tmp_path), []
    part = tmp_path / "programs" / "other" / "part"

    def nap(seconds):
        naps.append(seconds)
        part.write_text("all of it")
        going_on.close()

    monkeypatch.setattr(tail_builds, "sleep", nap)
    with ExitStack() as going_on, both.checked():
        going_on.enter_context(both.tail_is_built())
        part.write_text("half")
    assert naps == [tail_builds.PAUSE_S]
    assert both.trial.found() == []


def no_nap(seconds):
    pytest.fail("it waits")


def test_a_trial_without_time_waits_for_no_tail(tmp_path, monkeypatch):
    monkeypatch.setattr(tail_builds, "sleep", no_nap)
    both = SideBySide(tmp_path)
    with both.tail_is_built(), both.checked(seconds=0.0):
        (tmp_path / "programs" / "hidden.so").write_text("compiled at last")
    assert both.trial.found() == [FOUND.format("hidden.so")]


def test_a_trial_whose_store_did_not_change_waits_for_no_tail(tmp_path, monkeypatch):
    monkeypatch.setattr(tail_builds, "sleep", no_nap)
    both = SideBySide(tmp_path)
    with both.tail_is_built(), both.checked():
        pass
    assert both.trial.found() == []


def test_a_trial_does_not_wait_for_a_process_that_died_in_its_tail(tmp_path, monkeypatch):
    monkeypatch.setattr(tail_builds, "sleep", no_nap)
    both = SideBySide(tmp_path)
    with both.checked():
        child = os.fork()
        if child == 0:
            with both.tail_is_built():
                os._exit(0)
        os.waitpid(child, 0)
        (tmp_path / "programs" / "hidden.so").write_text("compiled at last")
    assert both.trial.found() == [FOUND.format("hidden.so")]


@pytest.mark.parametrize("when", ["before", "in", "after"])
def test_work_that_a_trial_hides_is_found_beside_a_tail(tmp_path, when):
    hidden = tmp_path / "programs" / "one" / "hidden.so"
    does = {"tail does": lambda: both.program.open()} if when == "in" else {}
    both = SideBySide(tmp_path, {"opening writes": [hidden]}, does)
    with both.checked():
        if when == "before":
            both.program.open()
        both.build_tail()
        if when == "after":
            both.program.open()
    assert both.trial.found() == [FOUND.format("one/hidden.so")]
    assert both.listed()[0] == {"hidden.so"}


def test_a_file_of_a_tail_that_is_written_again_is_work_of_the_trial_that_does(tmp_path):
    both = SideBySide(tmp_path)
    with both.checked():
        both.build_tail()
        (tmp_path / "programs" / "other" / "chunk-1" / "code.bin").write_text("another program")
    assert both.trial.found() == [FOUND.format("other/chunk-1/code.bin")]


@pytest.mark.parametrize("programs", ["third", "other"])
def test_trials_that_build_tails_at_the_same_time_each_keep_their_own(tmp_path, programs):
    """Of the same adapter they share the program of one step."""
    chunk_8 = make_trial(chunk=8)
    request = dataclasses.replace(REQUEST, strategy=chunk_8.strategy)
    worker = Worker(tmp_path, Adapter(), programs)
    both = SideBySide(tmp_path, tail_lies={"tail does": lambda: worker.programs.time_tail(chunk_8, STEP)})
    worker.build(chunk_8, request)
    worker.load(chunk_8, request)
    with worker.programs.watched(chunk_8, CHECKING, math.inf):
        both.build_tail()
    assert both.beside.found() == worker.found() == []
    files = {f"{programs}/chunk-1/{name}" for name in TAIL_FILES}
    assert set(worker.store.listed(later(chunk_8))) == files
    assert set(worker.store.listed(later(TRIAL))) == {f"other/chunk-1/{name}" for name in TAIL_FILES}


@pytest.mark.parametrize("said", [0.0, 0.001])
def test_a_tail_that_takes_longer_than_it_says_is_told_and_has_the_suites_seconds(tmp_path, said):
    worker = Worker(tmp_path, Adapter(**{"tail takes": 0.4, "tail said": said}))
    worker.build()
    worker.load()
    seen = worker.programs.time_tail(TRIAL, STEP)
    assert worker.programs.tail_build_s(TRIAL, seen) == seen > 0
    assert "the first ragged call took" in worker.found()[0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (lambda cache: None, "NoneType instead of ProgramFiles"),
        (lambda cache: ProgramFiles(()), "its files have no program"),
        (lambda cache: ProgramFiles((cache / "absent.so",)), "does not exist"),
        (lambda cache: ProgramFiles((Path(__file__),)), "is not under its cache"),
        (lambda cache: ProgramFiles((cache / ".." / "elsewhere.so",)), "is not under its cache"),
    ],
    ids=["none", "empty", "absent", "outside", "beside"],
)
def test_files_that_cannot_be_a_programs_are_refused(tmp_path, files, words):
    with pytest.raises(AdapterError, match=words):
        Worker(tmp_path, Adapter(files=files)).build()


@pytest.mark.parametrize("lowered", ["", "looped", "fast", "unrolled 4 of 2"])
def test_a_form_that_is_of_no_form_is_refused(tmp_path, lowered):
    with pytest.raises(AdapterError, match="no form that the suite knows"):
        Worker(tmp_path, Adapter(artifact={"lowered": lowered})).build()


@pytest.mark.parametrize("artifact", [{"digest": "f" * 64}, {"nbytes": 1}])
def test_digest_and_size_are_the_files_own_whatever_the_adapter_says(tmp_path, artifact):
    honest, lying = Worker(tmp_path / "a", Adapter()), Worker(tmp_path / "b", Adapter(artifact=artifact))
    for worker in (honest, lying):
        worker.build()
        worker.load()
    found = [worker.programs.described(TRIAL, REQUEST) for worker in (honest, lying)]
    assert (found[0].digest, found[0].nbytes) == (found[1].digest, found[1].nbytes)
    assert found[0].nbytes == sum(path.stat().st_size for path in honest.load().files.program)


def test_two_forms_of_int8_with_the_same_files_are_two_programs(tmp_path):
    program = Adapter().build(REQUEST, tmp_path)
    forms = [dataclasses.replace(REQUEST, precision=Precision.of(dtype)) for dtype in ("int8_weights", "int8_dynamic")]
    assert len({described(program, request).digest for request in forms}) == 2


def test_the_digest_is_of_bytes_and_weights_and_not_of_names(tmp_path):
    program = Adapter().build(REQUEST, tmp_path)
    digest = described(program, REQUEST).digest
    moved = tmp_path / "elsewhere.bin"
    program.files.program[0].rename(moved)
    program.files = ProgramFiles((moved, program.files.program[1]))
    assert described(program, REQUEST).digest == digest
    moved.write_text("another program")
    assert described(program, REQUEST).digest != digest


def test_files_of_identity_decide_the_digest_and_not_the_size(tmp_path):
    program = Adapter().build(REQUEST, tmp_path)
    nbytes = described(program, REQUEST).nbytes
    text = tmp_path / "ir.txt"
    text.write_text("the IR that Python runs")
    program.files = ProgramFiles(program.files.program, (text,))
    found = described(program, REQUEST)
    assert found.nbytes == nbytes
    program.files.program[0].write_text("built at another time")
    assert described(program, REQUEST).digest == found.digest
    text.write_text("the IR of another program")
    assert described(program, REQUEST).digest != found.digest


def test_files_that_a_build_wrote_are_named_in_their_order(tmp_path):
    store = ProgramStore(tmp_path)
    names = [f"{folder}{letter}.bin" for folder in ("", "inner/") for letter in "abcdef"]
    for name in reversed(names):
        (store.programs / name).parent.mkdir(parents=True, exist_ok=True)
        (store.programs / name).touch()
    assert store.changed_since({}) == tuple(sorted(names))


@pytest.mark.parametrize("content", [b"one", b"two"])
def test_a_file_of_another_build_that_was_written_later_is_read_though_its_size_is_the_same(tmp_path, content):
    store = ProgramStore(tmp_path)
    file = store.programs / "code.bin"
    file.parent.mkdir()
    file.write_bytes(b"one")
    store.note("another", ["code.bin"])
    file.write_bytes(content)
    later = time.time_ns() + 10**9
    os.utime(file, ns=(later, later))
    store.clear_for("new")
    assert file.exists() == (content == b"one")


FILES = ("code.bin", "weights.bin", "facts.json")
DAMAGES = {
    "flipped": lambda file: file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "empty": lambda file: file.write_bytes(b""),
    "deleted": Path.unlink,
    "exchanged": lambda file: file.write_bytes((file.parent.parent / "chunk-1" / file.name).read_bytes()),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_artifact_is_removed_whole_and_never_loaded(tmp_path, name, damage):
    first = Worker(tmp_path, Adapter())
    first.build()
    Adapter().build(of_one_step(REQUEST), first.store.programs)
    DAMAGES[damage](first.store.programs / "chunk-4" / name)
    second = Worker(tmp_path, Adapter())
    assert not second.programs.is_intact(TRIAL)
    assert not (second.store.programs / "chunk-4").exists()
    assert second.build() == "cold"
    assert second.programs.is_intact(TRIAL)
    assert f"chunk-4/{name}" in second.found()[0]


def test_a_build_takes_nothing_that_another_build_left_damaged(tmp_path):
    Worker(tmp_path, Adapter()).build()
    (tmp_path / "programs" / "chunk-4" / "code.bin").write_text("torn")
    other = make_trial(time="unrolled")
    worker = Worker(tmp_path, Adapter())
    assert worker.build(other) == "cold"
    assert worker.programs.is_intact(other)


def test_what_is_on_no_list_is_a_leftover_and_is_built_again(tmp_path):
    Adapter().build(REQUEST, tmp_path / "programs")
    (tmp_path / "programs" / "part-123-program").write_text("half")
    worker = Worker(tmp_path, Adapter())
    assert worker.build() == "cold"
    assert not (tmp_path / "programs" / "part-123-program").exists()
    assert worker.found() == []


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_list_that_is_torn_makes_a_new_build(tmp_path, content):
    first = Worker(tmp_path, Adapter())
    first.build()
    (list_,) = (tmp_path / "lists").iterdir()
    list_.write_text(content)
    second = Worker(tmp_path, Adapter())
    assert not second.programs.is_intact(TRIAL)
    assert second.build() == "cold"
    assert json.loads(list_.read_text())


def test_a_trial_that_shares_a_program_verifies_all_of_its_files(tmp_path):
    Worker(tmp_path, Adapter()).build()
    other = make_trial(time="unrolled")
    sharing = Worker(tmp_path, Adapter())
    assert sharing.build(other) == "cached"
    (tmp_path / "programs" / "chunk-4" / "facts.json").write_text("{}")
    assert not Worker(tmp_path, Adapter()).programs.is_intact(other)


def test_a_program_that_changes_after_it_was_verified_is_not_loaded(tmp_path):
    worker = Worker(tmp_path, Adapter())
    worker.build()
    (tmp_path / "programs" / "chunk-4" / "code.bin").write_text("changed")
    with pytest.raises(FileNotFoundError, match="changed after they were verified"):
        worker.programs.load(TRIAL, REQUEST)


def test_a_trial_whose_artifact_is_torn_between_build_and_load_is_built_again(tmp_path):
    context, examined = context_in(tmp_path), examine(TRIAL)

    with closing(start_trial_worker(examined, context.folders, log_name(TRIAL))) as worker:
        built = build(import_framework(examined, worker, context), worker, context)
        (file,) = (path for path in (tmp_path / "artifacts" / "programs").rglob("*") if path.is_file())
        file.write_bytes(b"")
        checked = check(load(built, worker, context), worker, context)
    assert checked.failure is None
    assert [finding.kind for finding in checked.findings] == ["artifact"]
    assert "so it was removed" in checked.findings[0].detail
    assert checked.loaded.load_s is not None


def test_equal_programs_share_samples_only_where_a_short_sampling_agrees(tmp_path):
    assert agree([1.0, 1.1, 1.0], [1.4, 1.2, 1.3])
    assert agree([1.0, 1.1, 4.0], [2.0, 2.2, 3.0])
    assert not agree([1.0, 1.1, 1.2], [2.0, 2.2, 3.0])
    same = SamePrograms()
    checked = check_trial(TRIAL, context_in(tmp_path), same.compare)

    class Slow:
        def ask(self, command, timeout, memory=None):
            return type("Blocks", (), {"first": (1.0, 1.0), "second": (3.0, 3.0)})

        def take_findings(self):
            return ()

    class Dead(Slow):
        def ask(self, command, timeout, memory=None):
            raise WorkerError("crashed", "died of SIGSEGV", alive=False)

    for worker, words in ((Slow(), "took 1 s and 3 s a call"), (Dead(), "died of SIGSEGV")):
        again = same.compare(dataclasses.replace(checked), worker)
        assert words in again.findings[-1].detail
    assert same.same_as == {}


def test_equal_programs_share_samples_only_where_they_are_called_alike(tmp_path):
    checked = check_trial(TRIAL, context_in(tmp_path))

    class Alike:
        def ask(self, command, timeout, memory=None):
            return type("Blocks", (), {"first": (1.0,), "second": (1.0,)})

    def shares(**changes):
        trial = dataclasses.replace(TRIAL, strategy=dataclasses.replace(TRIAL.strategy, **changes))
        examined = dataclasses.replace(checked.examined, trial=trial)
        same = SamePrograms()
        for one in (checked, dataclasses.replace(checked, built=dataclasses.replace(checked.built, examined=examined))):
            same.compare(one, Alike())
        return trial.id in same.same_as

    assert shares(time="unrolled"), "both were compiled to the same"
    assert not any(shares(**changes) for changes in ({"state": "stateful"}, {"chunk": 2}, {"launch": "graph"}))
