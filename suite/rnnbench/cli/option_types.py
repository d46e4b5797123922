"""Types of arguments and options: paths, numbers, shares and times. A wrong value gets a message in words."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

import click
from click.types import StringParamType


class GivenPath(click.Path):
    """A path. An empty text is refused: an unset variable of a shell does not mean the working folder.

    A `~/` at its beginning is the home folder. A shell leaves it as it is in `--results=~/runs`.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(path_type=Path, **how)
        if not self.file_okay:
            self.name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("expected a path, got an empty text", param, ctx)
        path = self.from_home(value, param, ctx)
        if not self.file_okay and os.path.isfile(path):
            self.fail(f"'{path}' is a file; expected a folder, so give another path", param, ctx)
        if not self.dir_okay and os.path.isdir(path):
            self.fail(f"'{path}' is a folder; expected a file, so give another path", param, ctx)
        try:
            os.lstat(path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self.fail(f"'{path}' is longer than a path can be; give a shorter one", param, ctx)
        if os.path.exists(path) and not os.access(path, os.R_OK):
            self.fail(f"'{path}' cannot be read by this user; change who may, or give another path", param, ctx)
        if self.exists and not os.path.exists(path):
            from rnnbench.spelling import absent

            self.fail(f"'{path}' {absent(Path(path))}", param, ctx)
        return super().convert(path, param, ctx)

    def from_home(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str | Path) or Path(value).parts[:1] != ("~",):
            return value
        path = os.path.expanduser(value)
        if path == os.fspath(value):
            self.fail(f"'{value}': this user has no home folder; give the whole path", param, ctx)
        return path


class GivenText(StringParamType):
    """A text. An empty text is refused, as by `GivenPath`. Otherwise the command would silently use its default."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(super().convert(value, param, ctx))
        if not text.strip():
            default = "; leave the option out for its default" if isinstance(param, click.Option) else ""
            self.fail(f"expected a text, got '{text}'{default}", param, ctx)
        return text


class ReleaseVersion(GivenText):
    """A version (PEP 440). What is none is refused before a package index is asked."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from packaging.version import Version

        text = super().convert(value, param, ctx)
        try:
            Version(text)
        except ValueError:  # Also of a number with thousands of digits.
            self.fail(f"expected a version of the package, such as 1.24.1, got '{text}'", param, ctx)
        return text


class ExistingPath(GivenPath):
    """The path of an existing file or folder. The message about a missing one says what may be meant."""

    def __init__(self, **how: Any) -> None:
        super().__init__(exists=True, **how)


class WholeNumber(click.IntRange):
    """A whole number in a range. The message about a wrong value has the range."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            upto = "" if self.max is None else f" to {self.max:,}"
            beyond = " on" if self.max is None else ""
            self.fail(f"expected a whole number from {self.min:,}{upto}{beyond}, got '{value}'", param, ctx)
        return number


class Number(click.FloatRange):
    """A number in a range. NaN is refused, although it is neither smaller nor larger."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"expected a number from {self.min:,g} to {self.max:,g}, got '{value}'", param, ctx)
        return number


class Share(click.ParamType[float]):
    """A share such as 3% or 0.03 within bounds, which a command gets as a fraction."""

    name = "share"

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from rnnbench.cases import parse_share

        share = parse_share(value)
        if share is None or not self.low <= share <= self.high:
            bounds = f"{100 * self.low:g}% to {100 * self.high:g}%"
            self.fail(f"expected a share from {bounds}, such as 3% or 0.03, got '{value}'", param, ctx)
        return share


class Duration(click.ParamType[float]):
    """A time such as 90s or 5min, which a command gets in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from rnnbench.cases import parse_duration

        seconds = parse_duration(value)
        if seconds is None or seconds <= 0:
            self.fail(f"expected a duration such as 60s or 5min, got '{value}'", param, ctx)
        return seconds
