"""Build the hosts of this folder, check them, and time them beside `bound`.

    python docs/hosts/hosts.py RUN [NAME …]

RUN is the folder of a run of `cases/questions/init-and-step-in-my-own-host.yaml` with `--keep-artifacts`. Each host
loads the artifact of that run, must write what the float64 reference says for two streams, and is then timed in turn
with `bound` calls of the same artifact, on one core. The table is printed, and written into RUN as `hosts.json` and
`hosts.png`. What was built stays in `RUN/hosts`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rnnbench.backends import find, request_of
from rnnbench.cases import Trial, load_case
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.conformance.tolerance import Errors
from rnnbench.measure import interval_of, sample_block
from rnnbench.plan import targets_of
from rnnbench.results import CheckResult
from rnnbench.rnn import draw_inputs, draw_weights

FOLDER = Path(__file__).parent
CASE = FOLDER.parents[1] / "cases" / "questions" / "init-and-step-in-my-own-host.yaml"
STREAMS = 2
ROUNDS, TURN_S = 9, 0.2
"""Rounds of one turn of each, and the seconds of a turn of `bound`."""


@dataclass(frozen=True)
class Host:
    """A target whose artifact a host loads, and how the artifact's name ends."""

    target: str
    suffix: str


HOSTS = {
    "onnxruntime": Host("onnxruntime:onnx", ".onnx"),
    "litert": Host("litert:tensorflow", ".tflite"),
    "openvino": Host("openvino:onnx", ".blob"),
    "tvm": Host("tvm:relax", ".so"),
    "aotinductor": Host("torch:aoti", ".pt2"),
}


@dataclass(frozen=True)
class Figures:
    """A host beside `bound`: medians of one step, in seconds, over the rounds; the ratio with its 95 % interval."""

    host: str
    trial: str
    host_s: float
    bound_s: float
    ratio: float
    interval: tuple[float, float] | None


def build_host(name: str, folder: Path) -> Path:
    """The host's program, built under a folder by this folder's Makefile. Raises CalledProcessError."""
    command = ["make", "-s", "-C", str(FOLDER), f"BUILD={folder.resolve()}", f"PYTHON={sys.executable}", name]
    subprocess.run(command, check=True)
    return folder.resolve() / name


def draw_frames(trial: Trial) -> np.ndarray:
    """Frames [steps, STREAMS, input]. Each stream has its own."""
    seeds = range(trial.seed, trial.seed + STREAMS)
    return np.concatenate([draw_inputs(trial.model, trial.steps, 1, seed) for seed in seeds], axis=1)


def run_host(program: Path, artifact: Path, frames: np.ndarray, hidden: int) -> tuple[np.ndarray, float]:
    """What the host writes [steps, STREAMS, hidden], and the median seconds of a step. Raises CalledProcessError."""
    steps, streams, width = frames.shape
    with TemporaryDirectory() as folder:
        given, written = Path(folder, "frames"), Path(folder, "results")
        frames.astype(np.float32).tofile(given)
        command = [str(word) for word in (program, artifact, width, hidden, given, written)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        y = np.fromfile(written, np.float32)
    return y.reshape(steps, streams, hidden), int(done.stdout.split()[1]) * 1e-9


def compare(trial: Trial, frames: np.ndarray, y: np.ndarray, references: Path) -> CheckResult:
    """Each stream beside its own run of the float64 reference, with the tolerance of the suite's checks."""
    errors, reference = Errors(), ReferenceTrajectories(trial, references)
    for stream in range(STREAMS):
        exact = reference.run(frames[:, stream : stream + 1])
        for step, rounding in enumerate(exact.rounding):
            errors.add(f"y of stream {stream}, step {step}", y[step, stream : stream + 1], exact.y[step], rounding)
    return errors.verdict()


def trial_of(host: Host, *settings: str) -> Trial:
    """The trial of the case whose artifact a host loads."""
    (trial,) = load_case(CASE, settings).trials(targets_of([host.target]))
    return trial


def files_of(run: Path, trial: Trial) -> Path:
    """The list of the files of a trial's program, in a run with kept artifacts."""
    return run / "artifacts" / "lists" / f"{trial.digest}.json"


def artifact_of(run: Path, trial: Trial, suffix: str) -> Path:
    """The file of a trial's program that a host loads. Raises FileNotFoundError."""
    programs = run / "artifacts" / "programs"
    files = json.loads(files_of(run, trial).read_text())
    return next(programs / str(name) for name in files if name.endswith(suffix))


def time_in_turn(name: str, run: Path, program: Path) -> Figures:
    """Rounds of the host and of `bound`, each first in every other round, on one core that only this process uses."""
    host = HOSTS[name]
    trial = trial_of(host)
    artifact = artifact_of(run, trial, host.suffix)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    frames = draw_frames(trial)
    request = request_of(trial, draw_weights(trial.model, trial.seed))
    cache = artifact.relative_to(run / "artifacts" / "programs").parts[0]
    session = find(trial.target.backend).build(request, run / "artifacts" / "programs" / cache).open()
    bound = session.bind([{"x": frames[step : step + 1, :1]} for step in range(len(frames))])
    turns = {
        "host": lambda: run_host(program, artifact, frames, trial.model.width)[1],
        "bound": lambda: float(np.median(sample_block(bound, bound.sync, TURN_S).seconds)),
    }
    rounds = [{turn: turns[turn]() for turn in sorted(turns, reverse=number % 2 == 1)} for number in range(ROUNDS)]
    host_s, bound_s = (statistics.median(one[turn] for one in rounds) for turn in ("host", "bound"))
    ratios = [one["host"] / one["bound"] for one in rounds]
    return Figures(name, trial.id, host_s, bound_s, statistics.median(ratios), interval_of(ratios))


def measure(name: str, run: Path) -> Figures:
    """Build a host, check it, and time it. Raises SystemExit where it writes something else than the reference."""
    trial = trial_of(HOSTS[name])
    frames = draw_frames(trial)
    program = build_host(name, run / "hosts")
    y, _ = run_host(program, artifact_of(run, trial, HOSTS[name].suffix), frames, trial.model.width)
    with TemporaryDirectory() as references:
        result = compare(trial, frames, y, Path(references))
    if result.verdict != "pass":
        raise SystemExit(f"{name}: {result.detail}")
    return time_in_turn(name, run, program)


def measure_apart(name: str, run: Path) -> Figures:
    """As `measure`, in a fresh process: a framework that is loaded changes what another one does."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measure, name, run).result()


def draw(figures: list[Figures], path: Path) -> None:
    """Two bars for each host: a step in C or C++, and a bound call. Needs Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.7 + 0.6 * len(figures)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(figures))
    for offset, label, colour, seconds in (
        (-0.2, "bound call from Python", "#e69f00", [one.bound_s for one in figures]),
        (0.2, "step in C or C++", "#0072b2", [one.host_s for one in figures]),
    ):
        axes.barh(places + offset, np.array(seconds) * 1e6, 0.38, label=label, color=colour)
    axes.set_yticks(places, [one.host for one in figures])
    axes.invert_yaxis()
    axes.set_xlabel("µs per step, median of the rounds")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=110)


def main(run: Path, names: list[str]) -> None:
    chosen = [name for name in names or HOSTS if files_of(run, trial_of(HOSTS[name])).exists()]
    for name in set(names or HOSTS) - set(chosen):
        missing = f"{name}: {run} has no program of {HOSTS[name].target}"
        print(f"{missing}; was it run with --keep-artifacts?", file=sys.stderr)
    os.environ["OMP_NUM_THREADS"] = "1"
    figures = [measure_apart(name, run) for name in chosen]
    (run / "hosts.json").write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n")
    draw(figures, run / "hosts.png")
    print("| host | C or C++ / `bound` | a step in C or C++ | `bound` |\n|---|---|---|---|")
    for one in figures:
        low, high = one.interval or (one.ratio, one.ratio)
        times = f"{one.host_s * 1e6:.1f} µs | {one.bound_s * 1e6:.1f} µs"
        print(f"| {one.host} | {one.ratio:.2f} [{low:.2f}, {high:.2f}] | {times} |")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(HOSTS):
        raise SystemExit(f"{__doc__}\nNAME is one of {', '.join(HOSTS)}.")
    main(Path(sys.argv[1]), sys.argv[2:])
