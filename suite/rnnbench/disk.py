"""Files that are written whole, files that are made again where they are damaged, and errors of the disk itself."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

BROKEN_DISK_ERRORS = frozenset(
    {
        *(errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.ENODATA, errno.ENODEV, errno.EREMOTEIO, errno.ENOLINK),
        errno.ESTALE,
    }
)
"""Errors of a disk that is broken, of a damaged file system (wrong checksums), and of a disk that is no longer there,
as that of a server."""
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, *BROKEN_DISK_ERRORS})
"""Errors of a disk that is full or broken. No trial is at fault, and no later trial would fare better."""
MOST_READ = 1 << 30
"""Bytes of a file that is read as a whole: more than any such file has."""
ROOM = 256 << 10
"""Bytes that a disk has room for which is not full: those of many records."""
_PART = re.compile(r"\..+\.\d+-\d+\.part")
"""The name of a file that `write_whole` has not finished."""
_BEGINS = 3
"""Times that it is begun, if another process removes it before it is locked."""
_swept: set[Path] = set()
"""Folders of which this process has removed what was left unfinished."""
_KEPT_OF_NAME = 40
"""Characters of a name that are part of an unfinished file's name. A character has up to 4 bytes."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_DAMAGED = (OSError, ValueError, EOFError, KeyError, TypeError, RecursionError, zipfile.BadZipFile)
"""What the readers of NumPy, json and Pydantic raise where a file is empty, torn or holds something else."""


def is_disk_error(error: BaseException) -> bool:
    """Whether the disk is full or broken."""
    return isinstance(error, OSError) and error.errno in DISK_ERRORS


def error_of_disk(folder: Path) -> OSError | None:
    """Whether the disk of this folder is full or broken: the error of writing ROOM bytes there, if there is one."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            left = ROOM
            while left:
                left -= file.write(bytes(left))
            os.fsync(file.fileno())
    except OSError as error:
        return error if is_disk_error(error) else None
    return None


class _NamedFile(FileIO):
    """A file for reading. Its errors name it, also those of a read and of the close."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        with _named(self._path):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with _named(self._path):
            return super().readall()

    def close(self) -> None:
        with _named(self._path):
            super().close()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def open_plain(path: Path) -> BufferedReader:
    """The file, for reading. Raises OSError for what is no plain file: a pipe or a device may have no end.

    Errors of its reads and of its close name it, too.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        require_plain(descriptor, path)
        return BufferedReader(_NamedFile(descriptor, path))
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path) -> bytes:
    """The content of a plain file. Raises OSError as `open_plain` does, and for a file of more than MOST_READ bytes.

    One that is damaged may say that it has terabytes, and would take all memory.
    """
    with open_plain(path) as file:
        with _named(path):
            nbytes = os.fstat(file.fileno()).st_size
        if nbytes > MOST_READ:
            raise OSError(errno.ENOTSUP, f"{nbytes:,} bytes, where no file has more than {MOST_READ:,}", str(path))
        return file.read()


def open_own(path: Path, flags: int) -> int:
    """The descriptor of a file that this suite writes in place. Makes it, and raises OSError for a link or a pipe.

    A run that was made elsewhere may have a link to any file of its user.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, f"{path.name} is a link to another file", str(path)) from error
        raise
    try:
        require_plain(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_plain(descriptor: int, path: Path) -> None:
    """Raises OSError where the descriptor is not that of a plain file."""
    with _named(path):
        mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.ENOTSUP, f"{path.name} is a pipe or a device, and no plain file", str(path))


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, durable: bool = False) -> None:
    """Fill the file by `write`, as a whole or not at all, also where other processes write it. Makes its folder.

    With `durable`, return once it is on the disk. Raises OSError, which names the file, or the other one that `write`
    could not use; what was there before stays.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    part = unfinished(path, f"{os.getpid()}-{threading.get_ident()}.part")
    try:
        with _begun(part) as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            os.close(os.dup(file.fileno()))  # NFS says only at a close that its disk is full.
            part.replace(path)  # While its lock is held: a `_sweep` of another process would remove it.
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        of_target = isinstance(error, OSError) and str(error.filename) in ("None", str(part))
        if of_target and isinstance(error, FileNotFoundError):
            # The folder is there: it takes no files, as those of /proc.
            raise PermissionError(errno.EPERM, "no file can be made in this folder", str(path)) from error
        if isinstance(error, OSError):
            at_fault = path if of_target else error.filename
            raise OSError(error.errno, error.strerror or str(error), str(at_fault)) from error
        raise


def _begun(part: Path) -> BinaryIO:
    """An unfinished file. Its lock is held for as long as it is open, so that no `_sweep` takes it for a dead one's."""
    for left in reversed(range(_BEGINS)):
        file = part.open("wb")
        with suppress(OSError):  # On a file system without locks, nothing is swept.
            fcntl.flock(file, fcntl.LOCK_EX)
        if not left or _lies_at(file.fileno(), part):
            break
        file.close()
    return file


def _sweep(folder: Path) -> None:
    """Remove the unfinished files of killed writers: nobody holds their locks. Once in a process."""
    if folder in _swept:
        return
    _swept.add(folder)
    with suppress(OSError):
        for part in [folder / name for name in os.listdir(folder) if _PART.fullmatch(name)]:
            with suppress(OSError), part.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _lies_at(file.fileno(), part):
                    part.unlink()


def is_as_empty(folder: Path) -> bool:
    """Whether a folder has nothing in it but the unfinished files of killed writers. Raises OSError."""
    return all(_PART.fullmatch(name) for name in os.listdir(folder))


def _lies_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one of this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def unfinished(path: Path, ending: str) -> Path:
    """A hidden path beside this one, for what is not whole yet. Its name is not too long where that of the path is not.

    File systems allow 255 bytes.
    """
    return path.with_name(f".{path.name[:_KEPT_OF_NAME]}.{ending}")


def write_given(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Fill a file that the user named, as `write_whole` does. A link to a file stays one.

    A device or a pipe is written into: it would be replaced else. Raises OSError.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            write(file)
    else:
        write_whole(followed(path), write)


def followed(path: Path) -> Path:
    """Where a path leads: a link to a file of the user's stays one when the file is replaced.

    Raises OSError for a loop of links, which leads nowhere.
    """
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return real


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """`write_whole`, of bytes."""
    write_whole(path, lambda file: file.write(content), durable=durable)


def write_text(path: Path, content: str, *, durable: bool = False) -> None:
    """`write_whole`, of text in UTF-8."""
    write_bytes(path, content.encode(), durable=durable)


def is_json(text: bytes) -> bool:
    """Whether a line or a file is complete: a torn one is no JSON. Nor is one in another encoding than UTF-8."""
    try:
        json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True


def write_with_copy(path: Path, content: bytes) -> None:
    """Write JSON that nothing could give again, and a copy beside it: one after the other, each as a whole.

    Raises OSError.
    """
    write_bytes(path, content, durable=True)
    write_bytes(copy_of(path), content, durable=True)


def copy_of(path: Path) -> Path:
    """Where `write_with_copy` keeps the copy."""
    return path.with_name(f"{path.name}.copy")


def remove_anything(path: Path) -> None:
    """Remove what lies there, if anything does: a folder with all that is in it, a file, or a link. Raises OSError."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except OSError as error:  # As in `remove_folder`, it may name no file.
        raise OSError(error.errno, error.strerror, error.filename or str(path)) from error


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that is allowed. Raises nothing.

    Until Python 3.12, `shutil.rmtree` closes a folder again whose close has failed, and raises that error.
    """
    with suppress(OSError):
        shutil.rmtree(folder, ignore_errors=True)


def read_or_copy(path: Path, is_whole: Callable[[bytes], bool] = is_json) -> tuple[bytes, str]:
    """The content of such a file. If it is that of the copy, also why: a sentence without its end.

    Where the copy is no better, the content is the file's. Raises OSError where neither can be read.
    """
    copy, why = copy_of(path), ""
    for file in (path, copy):
        try:
            if is_whole(content := read_plain(file)):
                return content, why and f"{path}: {why}; {copy.name} was read instead"
            why = why or "torn or edited"
        except OSError as error:
            why = why or f"cannot be read: {error.strerror or error}"
    return read_plain(path), ""


def exchange(one: Path, other: Path) -> bool:
    """Give each of two folders the name of the other, at once. False where the system cannot, as on NFS."""
    names = (os.fsencode(one), os.fsencode(other))
    rename = getattr(ctypes.CDLL(None), "renameat2", None)  # glibc has it since 2.28, musl does not.
    return rename is not None and rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


@contextmanager
def any_damage_is_told(*told: type[Exception]) -> Iterator[None]:
    """Raise ValueError for what a reader raises beside it, OSError and the errors `told` where a file is damaged.

    After one flipped bit, NumPy and zipfile raise errors of a dozen types: of a token, a struct, a compression, a size.
    For an odd scalar, YAML's readers raise errors of an attribute, a key, an index, and arithmetic.
    """
    known: tuple[type[Exception], ...] = (OSError, ValueError, *told)
    try:
        yield
    except known:
        raise
    except Exception as error:
        raise ValueError(f"damaged ({type(error).__name__}: {error})") from error


def read_cached(path: Path, read: Callable[[Path], T]) -> T | None:
    """What `read` makes of a file that can be made again; None where it is absent, empty, torn or unreadable.

    Raises OSError where the disk is broken.
    """
    try:
        return read(path)
    except _DAMAGED as error:
        if is_disk_error(error):
            raise
        return None
