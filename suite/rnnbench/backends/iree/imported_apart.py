"""An importer in a process of its own, where its framework and a device's driver do not get on in one process.

TensorFlow's library exports its LLVM. Mesa's Vulkan drivers call LLVM too, and bind to TensorFlow's, which is another
version: the process dies of SIGSEGV (docs/backends/importers.md). On CUDA, TensorFlow would take the GPU for itself.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.iree.compile import die_with_caller
from rnnbench.model_files import ModelFileError

NOTE = "TensorFlow ran in a process of its own, so the build's time has its import in it."
_LAST_LINES = 4


def import_apart(request: Request, variables: Mapping[str, str]) -> str:
    """The module of a request, as JSON, made in a process with these variables. Raises BuildError."""
    process = subprocess.run(
        [sys.executable, "-m", __name__],
        input=pickle.dumps(request),
        capture_output=True,
        env={**os.environ, **variables},
        check=False,
        preexec_fn=die_with_caller,
    )
    if process.returncode:
        last_lines = process.stderr.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
        raise BuildError("\n".join([f"the importer of {request.route} failed", *(line[:400] for line in last_lines)]))
    answer = json.loads(process.stdout)
    if error := answer.get("error"):
        raise BuildError(error)
    return json.dumps(answer)


def main() -> None:
    """The request comes from the suite's own process. What a framework prints goes to the log."""
    from rnnbench.backends.iree.imported import import_here

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    request: Request = pickle.load(sys.stdin.buffer)
    try:
        text = import_here(request)
    except (BuildError, ModelFileError) as error:
        text = json.dumps({"error": str(error)})
    with answers:
        answers.write(text)


if __name__ == "__main__":
    main()
