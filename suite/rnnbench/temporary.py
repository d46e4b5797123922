"""Temporary files: a process that the suite starts has a folder of its own for them, and the folder goes with it.

A process that is killed, or that ends as a fork does (`os._exit`), removes none of what it made. TensorFlow leaves a
file for each function that it traces, and AOTInductor a folder for each package that it loads.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "rnnbench-"
MADE = "ready.json"
"""The file with the packages of an environment that the suite has made. It is there once all are installed."""
_VARIABLE = "TMPDIR"
_USERS_VARIABLE = "RNNBENCH_USERS_TMPDIR"


def users_folder() -> Path:
    """Where temporary files of the user lie."""
    return Path(os.environ.get(_USERS_VARIABLE) or tempfile.gettempdir())


def lasting_folder() -> Path:
    """Where things belong that outlive a process of the suite, and that each interpreter has of its own.

    In an environment that the suite has made, they go with it. There may be one for each release of a compiler.
    """
    environment = Path(sys.prefix)
    return environment if (environment / MADE).is_file() else users_folder()


class TemporaryFolder:
    """A folder for temporary files, of this process or of one that it starts. Only its user may read it."""

    def __init__(self, parent: Path | None = None, *, made: bool = True) -> None:
        """A folder in `parent`, or where this process has its temporary files.

        Unless `made`, it is not there yet, and `removed_on_failure` makes it.

        A process that the suite has started may be killed, with what it has started. Then its own folder is removed,
        and with it all that was made there. `path` is None where no folder can be made.
        """
        self._parent = parent or Path(tempfile.gettempdir())
        self.path: Path | None = None
        if made:
            self._make()

    @property
    def variables(self) -> Mapping[str, str]:
        """What makes a process that has them in its environment use the folder."""
        return {_VARIABLE: str(self.path), _USERS_VARIABLE: str(users_folder())} if self.path else {}

    def use(self) -> None:
        """This process, which was forked for it, uses the folder from now on."""
        os.environ.update(self.variables)
        tempfile.tempdir = None

    @contextmanager
    def removed_on_failure(self) -> Iterator[None]:
        """For starting the process that removes it. An interrupt may come before that has begun, and while the folder
        is made.
        """
        try:
            if self.path is None:
                self._make()
            yield
        except BaseException:
            self.remove()
            raise

    def keep(self) -> None:
        """Make it again where something removed it: systems remove old folders of temporary files."""
        if self.path:
            _make_again(self.path)

    def remove(self) -> None:
        """The folder and all in it, as far as that is allowed."""
        if self.path:
            shutil.rmtree(self.path, ignore_errors=True)

    def _make(self) -> None:
        """Make the folder. Its path is known before, so that an interrupt in between leaves no unknown folder."""
        self.path = self._parent / f"{PREFIX}{secrets.token_hex(8)}"
        try:
            self.path.mkdir(mode=0o700)
            self.path.chmod(0o700)  # Its user's umask may take his own rights away.
        except OSError:
            self.path = None


def keep_folder() -> None:
    """Make the folder of this process's temporary files again where a child of it has removed it."""
    with suppress(FileNotFoundError):
        _make_again(Path(tempfile.gettempdir()))


def _make_again(folder: Path) -> None:
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
