"""The pages of `docs/questions/`: their commands, and running them as a reader would."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from harness_command import run_command

from rnnbench.results import Row, read_run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "questions"


@dataclass(frozen=True)
class Page:
    """A page: its name without `.md`, and its text."""

    name: str
    text: str

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What stands in its section `Command`, indented: each line that begins with `rnnbench`, as arguments."""
        section = self.text.split("\n## Command\n")[1].split("\n## ")[0]
        lines = re.findall(r"^ {4}rnnbench (.*)$", section.replace("\\\n", " "), re.MULTILINE)
        return tuple(tuple(shlex.split(line, comments=True)) for line in lines)


def read_page(name: str) -> Page:
    return Page(name, (FOLDER / f"{name}.md").read_text())


def pages() -> list[Page]:
    return [read_page(path.stem) for path in sorted(FOLDER.glob("*.md"))]


def run_page(name: str, folder: Path, *options: str, status: int = 0) -> list[Row]:
    """Run the first `rnnbench run` of a page in a folder, with more options, and return the rows of its trials.

    The suite's files keep their places: the case of the command is read from the checkout. Plots are not drawn anew:
    the report goes where the folder is.
    """
    command = next(one for one in read_page(name).commands if one[0] == "run")
    arguments = [str(ROOT / word) if (ROOT / word).exists() and "/" in word else word for word in command]
    run_command(folder, *arguments, *options, status=status)
    (run,) = (folder / "results").iterdir()
    return read_run(run).rows()
