"""Every kind of device is declared in a file of its own, and says why it lacks figures."""

from __future__ import annotations

import pytest

from rnnbench.devices import KINDS
from rnnbench.measure import PATHS

FUNCTION_OF = {
    "latency_floor": "measure_roof",
    "cold": "make_evictor",
    "device_memory": "process_memory",
    "device_conditions": "conditions",
    "energy": "open_energy",
    "device_time": "open_clock",
}
"""The function of a kind that measures a figure."""
OF_THE_HOST = {"device_memory", "device_conditions", "device_time"}
"""Figures that the processor has under other names: its memory and its clock are the host's, and each block says what
disturbed it."""


def test_the_processor_comes_first_and_is_on_every_machine() -> None:
    assert next(iter(KINDS)) == "cpu"
    processor = KINDS["cpu"].describe()
    assert processor.name
    assert processor.memory > 0
    assert not processor.software
    assert [name for name, kind in KINDS.items() if kind.everywhere] == ["cpu"]
    assert KINDS["cpu"].unmeasured == {}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_measures_a_figure_or_says_why_not(name: str) -> None:
    kind = KINDS[name]
    assert kind.name == name
    for figure, function in FUNCTION_OF.items():
        is_measured = getattr(kind, function) is not None
        if name == "cpu" and figure in OF_THE_HOST:
            assert not is_measured
        else:
            assert is_measured != (figure in kind.unmeasured), figure
    assert set(kind.unmeasured) <= {*FUNCTION_OF, *PATHS}
    assert all(reason.endswith(".") for reason in kind.unmeasured.values())


@pytest.mark.parametrize("name", KINDS)
def test_a_trial_is_not_asked_for_what_its_kind_of_device_lacks(name: str, case_of_everything) -> None:
    settings = case_of_everything(name)
    assert ("cold" in settings) == ("cold" not in KINDS[name].unmeasured)
    assert ("energy" in settings) == ("energy" not in KINDS[name].unmeasured)


@pytest.fixture
def case_of_everything():
    """The settings of `measure:` that are left of a trial on a kind of device."""
    from rnnbench.cases import Target, make_case

    def settings(device: str) -> dict[str, float]:
        case = make_case(
            name="everything",
            model={"cell": "gru", "input": 2, "hidden": 3},
            workload={"steps": 2},
            strategy={"time": "looped", "state": "stitched"},
            target={"device": device},
            measure={"cold": True, "energy": True},
        )
        (trial,) = case.trials([Target("numpy", "eager")])
        return dict(trial.measure.settings)

    return settings
