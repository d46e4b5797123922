"""Temporary files: a process that the suite starts has a folder of its own for them, and the folder goes with it.

A process that is killed, or that ends as a fork does (`os._exit`), removes none of what it made. TensorFlow leaves a
file for each function that it traces, and AOTInductor a folder for each package that it loads.

All of these folders lie in one of the suite's, a `HeldFolder`. Whatever kills all processes of a suite at once, as the
end of a container or of the machine, the next suite removes it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rnnbench.disk import remove_folder

PREFIX = "rnnbench-"
HELD = f"{PREFIX}held-"
"""Begins the name of a folder that is removed once nobody holds its lock."""
YOUNG_S = 60.0
"""Seconds after which such a folder is removed by another process. The maker of a younger one may be about to lock it.
"""
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

    def __init__(self, parent: Path | None = None) -> None:
        """A folder in `parent`, or where this process has its temporary files.

        A process that the suite has started may be killed, with what it has started. Then its own folder is removed,
        and with it all that was made there. `path` is None where no folder can be made.
        """
        self.path: Path | None = None
        self._make(parent or Path(tempfile.gettempdir()), PREFIX)

    @property
    def variables(self) -> Mapping[str, str]:
        """What makes a process that has them in its environment use the folder."""
        return {_VARIABLE: str(self.path), _USERS_VARIABLE: str(users_folder())} if self.path else {}

    def use(self) -> None:
        """This process, which was forked for it, uses the folder from now on."""
        os.environ.update(self.variables)
        tempfile.tempdir = None

    def remove(self) -> None:
        """The folder and all in it, as far as that is allowed."""
        if self.path:
            remove_folder(self.path)

    def _make(self, parent: Path, prefix: str) -> None:
        """Make the folder. Its path is known before, so that an interrupt in between leaves no unknown folder."""
        self.path = parent / f"{prefix}{secrets.token_hex(8)}"
        try:
            self.path.mkdir(mode=0o700)
            self.path.chmod(0o700)  # Its user's umask may take his own rights away.
        except OSError:
            with suppress(OSError):
                self.path.rmdir()  # It was made where the second call alone failed.
            self.path = None


class HeldFolder(TemporaryFolder):
    """The folder of a suite. It is locked while a process lives that has its `descriptors`.

    It is not there before `removed_on_failure` makes it. Folders of the same user that nobody holds go then.
    """

    def __init__(self) -> None:
        self.path = None
        self.descriptors: tuple[int, ...] = ()

    @contextmanager
    def removed_on_failure(self) -> Iterator[None]:
        """For starting the process that removes it. An interrupt may come before that has begun, and while the folder
        is made.
        """
        try:
            if self.path is None:
                parent = Path(tempfile.gettempdir())
                _remove_abandoned(parent)
                self._make(parent, HELD)
                self._hold()
            yield
        except BaseException:
            self.remove()
            self.release()
            raise

    def keep(self) -> None:
        """Make it again where something removed it: systems remove old folders of temporary files."""
        if self.path and not self.path.is_dir():
            _make_again(self.path)
            self._hold()

    def release(self) -> None:
        """Close the descriptors of this process."""
        for descriptor in self.descriptors:
            with suppress(OSError):
                os.close(descriptor)
        self.descriptors = ()

    def _hold(self) -> None:
        """Where folders have no locks, as on NFS, nobody else can lock it either: it stays if all are killed."""
        self.release()
        if self.path:
            with suppress(OSError):
                self.descriptors = (_opened(self.path),)
                fcntl.flock(self.descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of suites of which no process is left. Those of other users, and links, are left alone."""
    with suppress(OSError):
        for folder in [parent / name for name in os.listdir(parent) if name.startswith(HELD)]:
            with suppress(OSError):
                _remove_unless_held(folder)


def _remove_unless_held(folder: Path) -> None:
    """Raises OSError where another process holds it."""
    descriptor = _opened(folder)
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid == os.getuid() and time.time() - facts.st_mtime > YOUNG_S:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folder(folder)
    finally:
        os.close(descriptor)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def keep_folder() -> None:
    """Make the folder of this process's temporary files again where a child of it has removed it."""
    with suppress(FileNotFoundError):
        _make_again(Path(tempfile.gettempdir()))


def _make_again(folder: Path) -> None:
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
