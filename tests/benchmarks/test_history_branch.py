"""A year of nights is small as an orphan branch, and as one archive that replaces another (minutes; docs/night.md).

The history is synthetic: no figure in it is a measurement. Each night is a commit, as the workflow makes it.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
import synthetic_history
import zstandard
from waiting import PATIENCE_S

NIGHTS = 365
MOST_BYTES = 100 << 20
"""Of a branch after a year: small for years beside what GitHub recommends for a repository (1 GB)."""


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "gc.auto=0")
    command = ["git", *settings, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return done.stdout


def pack_bytes(branch: Path) -> int:
    git(branch, "gc", "--quiet", "--prune=now")
    return sum(file.stat().st_size for file in (branch / ".git" / "objects").rglob("*") if file.is_file())


@pytest.mark.parametrize("trials", [50, 500])
def test_a_year_of_nights_stays_small(tmp_path: Path, trials: int) -> None:
    history = synthetic_history.write(tmp_path / "made", trials, NIGHTS)
    branch = tmp_path / "branch"
    branch.mkdir()
    git(branch, "init", "--quiet", "--initial-branch=night")
    for entry in history.runs:
        for file in (Path("runs") / f"{entry.run_id}.json", Path("rows") / f"{entry.run_id}.parquet"):
            target = branch / "history" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((history.root / file).read_bytes())
        git(branch, "add", "--all", ".")
        git(branch, "commit", "--quiet", "--message=Night")
    packed = pack_bytes(branch)
    plain = sum(file.stat().st_size for file in (branch / "history").rglob("*") if file.is_file())
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(branch / "history", "history")
    compressed = len(zstandard.ZstdCompressor(level=10).compress(archive.getvalue()))
    print(
        f"\n{trials} trials, {NIGHTS} nights: files {plain:,} bytes; branch {packed:,} bytes packed, "
        f"{packed / NIGHTS:,.0f} a night; archive {compressed:,} bytes"
    )
    assert packed < MOST_BYTES
