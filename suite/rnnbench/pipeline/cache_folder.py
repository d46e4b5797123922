"""The cache that the runs of a user share: where it is, how large it may be, and whether it can be used."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from rnnbench.cache import Cache, CacheFolder
from rnnbench.cases import parse_size

FOLDER, SIZE = "RNNBENCH_CACHE", "RNNBENCH_CACHE_SIZE"
"""Environment variables: the folder, and the largest size of all that is in it."""
DEFAULT_SIZE = "4GiB"


class CacheError(ValueError):
    """An environment variable of the cache has an impossible value. The message says which and what to do."""


class NoHomeError(CacheError):
    """The user has no home folder, as in a container that does not know its user, and no variable names another."""


def user_cache(*, reads: bool = True) -> CacheFolder:
    """The cache that the environment variables describe. It may not be writable. Raises CacheError."""
    text = os.environ.get(SIZE) or DEFAULT_SIZE
    size = parse_size(text)
    if size is None or size < 0:
        raise CacheError(f"{SIZE} is '{text}'; expected a size such as {DEFAULT_SIZE}, or 0 for no cache")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = os.path.expanduser(os.environ.get(FOLDER) or os.path.join(home, "rnnbench", "artifacts"))
    if size and folder.startswith("~"):
        raise NoHomeError(f"this user has no home folder for {folder}; name another folder with {FOLDER}")
    return CacheFolder(Path(folder).absolute(), int(size), reads)


def usable_cache(warn: Callable[[str], object], *, reads: bool = True) -> CacheFolder | None:
    """The cache; None if its size is 0, or if it cannot be written or has no place, which gives a warning.

    What killed runs left half written in it is removed.

    Only its owner can open the folder, since the programs in it are run. One that others can write into is not used.
    Raises CacheError.
    """
    try:
        cache = user_cache(reads=reads)
    except NoHomeError as error:
        warn(f"{error}. Until then every program is built, and none is kept")
        return None
    if not cache.bound:
        return None
    try:
        cache.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _others_may_write(cache.path):
            warn(
                f"{cache.path} belongs to another user, or others may write into it, and runs execute what is in it: "
                f"every program is built, and none is kept; `chmod go-w` keeps others out; {FOLDER} names another"
            )
            return None
        with tempfile.TemporaryFile(dir=cache.path):
            pass
        Cache(cache).remove_abandoned()
        return cache
    except OSError as error:
        warn(
            f"{cache.path} cannot be written ({error.strerror}): every program is built, and none is kept; "
            f"{FOLDER} names another folder"
        )
        return None


def _others_may_write(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid != os.geteuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
