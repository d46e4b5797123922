"""A cluster of two nodes on loopback, for the tests of this folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from ray_nodes import CASE, NODES, Command, LocalCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster with the nodes NODES. It ends with its module: other tests count the children of their process."""
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    cluster = LocalCluster()
    try:
        for name in NODES:
            cluster.add(name)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def command(tmp_path, cluster) -> Iterator[Command]:
    (tmp_path / "tiny.yaml").write_text(CASE)
    yield Command(tmp_path, cluster)
    for process in cluster.processes("rnnbench.fleet.node_process"):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
