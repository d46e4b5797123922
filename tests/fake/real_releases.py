"""Fake releases of a real package, ONNX Runtime, in a folder that pip takes for a package index, to install them from.

A fake release is a wheel without any code of the runtime: its module is the real one, which it finds behind itself on
the path. It has another version, and may take longer in each call.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from rnnbench.pipeline import made_environments

PACKAGE = "onnxruntime"
MODULE = '''\
"""A fake release: the real ONNX Runtime under another version. Each call takes {slowdown} times longer."""

import importlib.util
import sys
import time
from pathlib import Path

here = Path(__file__).parent
real = next(path for path in (Path(p) / "{package}" for p in sys.path) if path != here and (path / "capi").is_dir())
__path__ = [str(real)]
exec(compile((real / "__init__.py").read_text(), str(real / "__init__.py"), "exec"))


def _slow(method):
    def call(self, *arguments, **named):
        begun = time.perf_counter()
        result = method(self, *arguments, **named)
        now = time.perf_counter()
        end = now + (now - begun) * {slowdown}
        while time.perf_counter() < end:
            pass
        return result

    return call


if {slowdown}:
    InferenceSession.run_with_iobinding = _slow(InferenceSession.run_with_iobinding)
__version__ = "{version}"
'''


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """A wheel of pure Python with these files."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [
        f"{file},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},"
        for file, text in content.items()
    ]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in content.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,"]) + "\n")


class Index:
    """A folder in which pip finds releases, and nothing else."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder))
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        # The lower layer of every environment is the one that runs the tests.
        # Python reads .pth files, of which a suite that is installed as editable has one, in site folders alone.
        folders = [path for path in sys.path if path.endswith("site-packages")]
        here = "\n".join(f"import site; site.addsitedir({path!r})" for path in folders)
        wheel(folder, "here", "1.0", {"here.pth": f"{here}\n"})
        patch.setattr(made_environments, "this_suite", lambda: ["here==1.0"])
        patch.setattr(made_environments, "own_versions", list)
        patch.setattr(made_environments, "requirements_beside", lambda backends, named: [])

    def release(self, version: str, slowdown: float = 0.0) -> None:
        """Publish a fake release that takes so much longer in each call, as a share of the call's own time."""
        text = MODULE.format(slowdown=slowdown, version=version, package=PACKAGE)
        wheel(self.folder, PACKAGE, version, {f"{PACKAGE}/__init__.py": text})
