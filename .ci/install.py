"""`python .ci/install.py -c constraints.txt -e '.[test]'`: what pip installs, by uv where it can be had.

uv unpacks packages on every core, with half of the processor's time that pip takes. It has settings of its own, so it
is told where pip looks for packages. With a setting of pip's that it has not, or where it fails, pip installs.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PIP = [sys.executable, "-m", "pip"]
QUIET = ["--quiet", "--disable-pip-version-check"]
OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraint",
    "trusted-host": "--allow-insecure-host",
}
"""uv's options for settings of pip that may have several values."""
VARIABLES = {"cert": "SSL_CERT_FILE", "timeout": "UV_HTTP_TIMEOUT", "default-timeout": "UV_HTTP_TIMEOUT"}
"""uv's variables for settings of pip that have one value."""
LEFT_OUT = {"cache-dir", "no-cache-dir", "disable-pip-version-check", "no-input", "progress-bar", "quiet", "retries"}
"""Settings of pip that change nothing of what is installed."""
SECTIONS = ("global", "install", ":env:")
"""Where pip's settings are, the last one first."""


def pip_settings(listed: str) -> dict[str, str]:
    """What `pip config list` prints, by the name of the setting. Those of other commands are left out."""
    found = re.findall(r"^(global|install|:env:)\.(\S+?)=(.+)$", listed, re.MULTILINE)
    ordered = sorted(found, key=lambda each: SECTIONS.index(each[0]))
    return {name: str(ast.literal_eval(value)) for _, name, value in ordered}


def uv_settings(of_pip: dict[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """uv's options and variables for the settings of pip. None if it has not one of them."""
    options, variables = [], {}
    for name, value in of_pip.items():
        if name in OPTIONS:
            options += [word for each in value.split() for word in (OPTIONS[name], each)]
        elif name in VARIABLES:
            variables[VARIABLES[name]] = value
        elif name not in LEFT_OUT:
            return None
    return options, variables


def by_uv(arguments: Sequence[str]) -> bool:
    """Whether uv has installed it."""
    if subprocess.run([*PIP, "install", *QUIET, "-c", "constraints.txt", "uv"], capture_output=True).returncode:
        return False
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout
    if (settings := uv_settings(pip_settings(listed))) is None:
        return False
    options, variables = settings
    # Beside the packages, so that they are links to its files, and not copies.
    cache = Path(sys.prefix) / "uv"
    uv = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--python",
        sys.executable,
        "--cache-dir",
        str(cache),
    ]
    command = [*uv, "--index-strategy", "unsafe-best-match", *options, *arguments]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True)
    shutil.rmtree(cache, ignore_errors=True)
    return done.returncode == 0


if __name__ == "__main__":
    if not by_uv(sys.argv[1:]):
        sys.exit(subprocess.run([*PIP, "install", *QUIET, "--no-compile", *sys.argv[1:]]).returncode)
