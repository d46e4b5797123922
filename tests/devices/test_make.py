"""`make test-gpu` makes an environment in which the commands of docs/devices.md run."""

from __future__ import annotations

import re
from pathlib import Path

from rnnbench.pipeline.environment_packages import requirements_beside

ROOT = Path(__file__).parents[2]


def test_the_environment_for_a_gpu_has_what_its_commands_need() -> None:
    """`run` needs a report, and `night` also the history and the site."""
    (extras,) = re.findall(
        r"\$\(GPU\)/bin/python -m pip install .*-e '\.\[([\w,-]+)\]'", (ROOT / "Makefile").read_text()
    )
    commands = set(re.findall(r"\.venv-gpu/bin/rnnbench (\w+)", (ROOT / "docs" / "devices.md").read_text()))
    packages = {re.split(r"\W", text)[0] for text in requirements_beside(extras.split(","), set())}
    assert commands == {"run", "night"}
    assert {"nvidia", "cuda", "llvmlite", "matplotlib", "duckdb", "ruamel", "jinja2"} <= {p.lower() for p in packages}
