"""A cluster of two nodes on loopback, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_nodes import Command, LocalCluster, command_in, running_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """It ends with its module: other tests count the children of their process."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def command(tmp_path: Path, cluster: LocalCluster) -> Iterator[Command]:
    with command_in(tmp_path, cluster) as command:
        yield command
