"""Each program of `docs/upstream` shows its fault in the versions of its head (half an hour, pip; no figures).

Each runs in an environment of these versions.
"""

import shutil

import pytest

from rnnbench.pipeline import (
    ENVIRONMENTS,
    FaultState,
    earlier_environment,
    environment_of,
    find_reproduction,
    reproduce,
    reproductions,
)

OF_A_GPU = "nvidia-smi"
"""The tool that a script names where it needs a GPU of NVIDIA."""


@pytest.mark.parametrize("name", [one.name for one in reproductions()])
def test_the_fault_is_there_in_the_listed_versions(name):
    one = find_reproduction(name)
    if one.tools.startswith(f"{OF_A_GPU}:") and shutil.which(OF_A_GPU) is None:
        pytest.skip(f"{name} needs {one.tools}")
    found = reproduce(one, environment_of(one, ENVIRONMENTS), earlier_environment(one, ENVIRONMENTS))
    print(f"{name}: {found.state.value}: {found.printed}")
    assert found.state is FaultState.STILL_THERE
