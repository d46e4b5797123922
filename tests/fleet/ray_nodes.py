"""A real cluster of nodes on loopback, and the command run on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]
CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: [4, 5, 6]}
workload: {steps: 8, chunk: 2}
strategy: {time: looped, state: stitched}
measure: {budget: 100ms, processes: 1}
"""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes Ray take 127.0.0.1 for the address of its nodes and drivers, and so listen there alone."""
NODES = ("node-a", "node-b")


class LocalCluster:
    """The suite's side of `local_cluster.py`."""

    def __init__(self) -> None:
        paths = [str(ROOT / "suite"), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "160", **LOOPBACK}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("local_cluster.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        self.address, self.client_address = self._line(), self._line()

    def add(self, name: str) -> None:
        self._ask(f"add {name}")

    def remove(self, name: str) -> None:
        self._ask(f"remove {name}")

    def processes(self, word: str) -> list[psutil.Process]:
        """Those of its nodes with this word in their command line."""
        found = []
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE and word in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def close(self) -> None:
        """End it, and whatever of it is left."""
        left = psutil.Process(self._process.pid).children(recursive=True)
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(60)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _ask(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def _line(self) -> str:
        line = self._process.stdout.readline().strip()
        assert line, "the cluster has not started"
        return line


class Command:
    """The command, run in a folder, on a cluster: a process, since Ray stays in the one that has joined a cluster."""

    def __init__(self, folder: Path, cluster: LocalCluster) -> None:
        self.folder = folder
        self.cluster = cluster

    def start(self, *arguments: str, on: Sequence[str] | None = None, **options: Any) -> subprocess.Popen[str]:
        place = ["--on", self.cluster.address] if on is None else list(on)
        command = [sys.executable, "-m", "rnnbench", *arguments, *place]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(command, cwd=self.folder, env=self.cluster.environment, text=True, **pipes, **options)

    def __call__(self, *arguments: str, on: Sequence[str] | None = None, status: int = 0) -> str:
        """What it prints. It ends with that status."""
        process = self.start(*arguments, on=on)
        try:
            printed, _ = process.communicate(timeout=300)
        finally:
            process.kill()
        assert process.returncode == status, printed
        return printed

    def run_folder(self) -> Path:
        (folder,) = (self.folder / "results").glob("[!.]*")
        return folder


@contextmanager
def running_cluster() -> Iterator[LocalCluster]:
    """A cluster with the nodes NODES, until the block ends."""
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    cluster = LocalCluster()
    try:
        for name in NODES:
            cluster.add(name)
        yield cluster
    finally:
        cluster.close()


@contextmanager
def command_in(folder: Path, cluster: LocalCluster) -> Iterator[Command]:
    """The command in a folder that has `tiny.yaml`. What it leaves on the nodes is killed at the end."""
    (folder / "tiny.yaml").write_text(CASE)
    yield Command(folder, cluster)
    for process in cluster.processes("rnnbench.fleet.node_process"):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
