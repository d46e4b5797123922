"""Planted changes get the verdict they deserve, and nothing that differs goes unsaid."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import fake_records as fake
import pytest

from rnnbench.devices import Device
from rnnbench.optional import MissingExtraError, require
from rnnbench.results.compare import compare_runs, compared_record
from rnnbench.results.finding import Finding, FindingKind
from rnnbench.results.reading import StoreError
from rnnbench.results.record import CheckResult, CommonTrial, Outcome, Record
from rnnbench.results.run import Run
from rnnbench.results.timing import Latency, disturbed_share

pytest.importorskip("scipy")


@pytest.mark.parametrize(("scale", "regressed", "verdict"), [(1.0, False, "SAME"), (1.1, True, "SLOWER")])
def test_runs_are_compared_trial_by_trial_in_both_latencies(scale: float, regressed: bool, verdict: str) -> None:
    base = fake.run([fake.record(chunk=c, bound=1e-3, spread=1e-3) for c in (1, 16)], "old")
    new = fake.run([fake.record(chunk=c, bound=1e-3 * scale, spread=1e-3, seed=1) for c in (16, 1)], "new")
    result = compare_runs(base, new)
    assert [(c.path, c.verdict) for c in result.latencies] == [("bound", verdict), ("public", verdict)] * 2
    assert result.regressed is regressed
    assert (result.base, result.new) == ("old", "new")
    for change in result.latencies:
        assert change.judged.interval is not None
        assert change.judged.interval[0] <= change.ratio <= change.judged.interval[1]


def test_a_faster_run_has_not_regressed() -> None:
    result = compare_runs(fake.run([fake.record(bound=1e-3)]), fake.run([fake.record(bound=5e-4, seed=1)]))
    assert {c.verdict for c in result.latencies} == {"FASTER"}
    assert not result.regressed


@pytest.mark.parametrize("outcome", [o for o in fake.OUTCOMES if o != "ok"])
def test_what_was_ok_and_is_no_longer_is_a_regression(outcome: Outcome) -> None:
    result = compare_runs(fake.run([fake.record()]), fake.run([fake.record(outcome=outcome)]))
    (change,) = [change for change in result.facts if change.fact == "outcome"]
    assert (change.base, change.new, change.direction) == ("ok", outcome, "worse")
    assert change.detail == fake.REASONS[outcome]
    assert result.regressed
    assert result.latencies == ()


def test_what_is_ok_now_and_was_not_is_told_and_is_none() -> None:
    result = compare_runs(fake.run([fake.record(outcome="crashed")]), fake.run([fake.record()]))
    (change,) = result.facts
    assert (change.direction, change.sentence) == ("better", "is ok again (it was crashed)")
    assert not result.regressed


def test_a_failure_whose_check_had_no_time_is_not_told_as_gone() -> None:
    failed = fake.record(outcome="nonconforming")
    (name,) = failed.failed_checks
    late = {**failed.conformance, name: CheckResult(verdict="too-short")}
    left_out = {check: result for check, result in failed.conformance.items() if check != name}
    for conformance in (late, left_out):
        again = fake.record().model_copy(update={"conformance": conformance})
        (change,) = compare_runs(fake.run([failed]), fake.run([again])).facts
        told = f"may still fail the checks: {name} (they did not run, or were too short)"
        assert (change.direction, change.sentence) == ("neutral", told)


def test_trials_that_appeared_or_vanished_are_told_in_words() -> None:
    base, new = fake.record(chunk=1), fake.record(chunk=2)
    result = compare_runs(fake.run([base, fake.record()]), fake.run([new, fake.record()]))
    assert [(c.trial, c.sentence) for c in result.facts] == [
        (base.trial, "is no longer measured"),
        (new.trial, "is new"),
    ]
    assert result.found == {"vanished": 1}
    assert not result.regressed
    assert not any("in common" in w for w in result.warnings)
    assert any("no trial in common" in w for w in compare_runs(fake.run([base]), fake.run([new])).warnings)


def with_artifact(record: Record, **changes: Any) -> Record:
    assert record.artifact is not None
    return record.model_copy(update={"artifact": record.artifact.model_copy(update=changes)})


def test_facts_that_are_no_numbers_are_told_in_words() -> None:
    failing = {"values": CheckResult(verdict="fail"), "reset": CheckResult(verdict="fail")}
    doubtful = Finding(kind=FindingKind.TIME, detail="work was done in a thread", disbelieved=True)
    base = [fake.record(chunk=c) for c in (1, 2, 3)]
    base.append(fake.record(chunk=4, outcome="nonconforming"))
    new = [
        with_artifact(base[0], lowered="unrolled 16"),
        base[1].model_copy(update={"support": base[1].support.model_copy(update={"level": "emulated"})}),
        base[2].model_copy(update={"findings": (doubtful,)}),
        base[3].model_copy(update={"conformance": failing}),
    ]
    result = compare_runs(fake.run(base), fake.run(new))
    assert [(c.fact, c.sentence, c.direction) for c in result.facts] == [
        ("lowered", "became unrolled 16 (it was looped 1)", "neutral"),
        ("support", "has emulated support (it was native)", "worse"),
        ("believed", "has figures that are not believed: work was done in a thread", "worse"),
        ("failed_checks", "fails the checks: values, reset (it failed timed)", "worse"),
    ]
    assert result.found == {"checks": 1, "believed": 1, "support": 1, "lowered": 1}
    back = compare_runs(fake.run(new), fake.run(base))
    assert [c.direction for c in back.facts] == ["neutral", "better", "better", "worse"]
    believed = [c for facts in (result.facts, back.facts) for c in facts if c.fact == "believed"]
    assert [(c.base, c.new) for c in believed] == [("true", "false"), ("false", "true")]


def test_what_was_left_out_in_reading_a_run_is_a_warning() -> None:
    base = replace(fake.run([fake.record()], "old"), warnings=("old.jsonl:3: damaged",))
    new = replace(fake.run([fake.record()], "new"), warnings=("new.jsonl:4: damaged",))
    assert compare_runs(base, new).warnings == ("old.jsonl:3: damaged", "new.jsonl:4: damaged")


def test_differences_of_machine_versions_and_settings_come_as_warnings() -> None:
    machine = {"cpu": "Fake CPU 9001", "caches": {"L2": 4}, "load": 3.0}
    base = fake.run([fake.record()], "old", machine={"cpu": "Fake CPU 9000", "caches": {"L2": 2}, "load": 0.1})
    environment = fake.record().environment.model_copy(update={"threads_seen": 9, "variables": {"FAKE_OPT": "1"}})
    versions = {"fakelib": {"fakelib-package": "2.0"}}
    new = fake.run([fake.record(environment=environment)], "new", machine=machine, versions=versions, rnnbench="0.2.0")
    text = "\n".join(compare_runs(base, new, across_machines=True).warnings)
    for expected in (
        "cpu: Fake CPU 9000 in old, Fake CPU 9001 in new",
        "caches.L2: 2 in old, 4 in new",
        "fakelib.fakelib-package: 1.2.3 in old, 2.0 in new",
        "fakemlir: {'fakemlir-package': '1.2.3'} in old, none in new",
        "rnnbench differs: 0.1.0 in old, 0.2.0 in new",
        "threads seen differ in 1 trial, in the first of them 3 in old, 9 in new",
        "FAKE_OPT",
    ):
        assert expected in text
    assert "load" not in text
    assert compare_runs(base, base).warnings == ()


def test_runs_of_two_machines_are_refused_unless_told_to_and_no_latency_is_then_a_regression() -> None:
    base = fake.run([fake.record(bound=1e-3)], "old")
    timing = fake.record(bound=9e-3).timing.model_copy(update={"build_s": 60.0})
    slower = fake.record(bound=9e-3).model_copy(update={"timing": timing})
    new = fake.run([slower], "new", machine={**fake.info().machine, "cpu": "Fake CPU 9001"})
    with pytest.raises(
        StoreError, match=r"different machines \(cpu: Fake CPU 9000 and Fake CPU 9001\).*--across-machines"
    ):
        compare_runs(base, new)
    result = compare_runs(base, new, across_machines=True)
    assert {c.verdict for c in result.latencies} == {"SLOWER"}
    assert result.two_machines
    assert "none is a regression of a compiler" in result.warnings[0]
    assert (result.found, result.regressed) == ({"slower": 2, "build": 1}, False)
    assert compare_runs(base, new, across_machines=True, fail_on=("slower",)).regressed
    lost = fake.run([fake.record(outcome="crashed")], "new", machine={**fake.info().machine, "cpu": "Fake CPU 9001"})
    assert compare_runs(base, lost, across_machines=True).regressed, "a program that crashes is no matter of speed"


def test_another_python_or_load_is_no_other_machine() -> None:
    machine = {**fake.info().machine, "python": "3.11.7", "load": 0.1}
    base = fake.run([fake.record(bound=1e-3)], "old", machine=machine)
    new = fake.run([fake.record(bound=1e-3)], "new", machine={**machine, "python": "3.12.1", "load": 7.0})
    result = compare_runs(base, new)
    assert not result.two_machines
    assert result.latencies
    assert result.warnings == ("machines differ in python: 3.11.7 in old, 3.12.1 in new",)


def test_a_shared_measurement_is_followed_or_left_out() -> None:
    own = fake.record(bound=1e-3, spread=1e-3)
    shared = fake.record(time="unrolled", bound=None, same_as=own.trial)
    twice = compare_runs(fake.run([own, shared]), fake.run([own, shared]))
    assert twice.shared == 1
    assert len(twice.latencies) == 2
    apart = fake.record(time="unrolled", bound=2e-3, spread=1e-3)
    result = compare_runs(fake.run([own, shared]), fake.run([own, apart]))
    assert result.shared == 0
    assert {c.verdict for c in result.latencies if c.trial == apart.trial} == {"SLOWER"}


def test_a_threshold_that_is_no_fraction_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.03 is 3 %"):
        compare_runs(fake.run([]), fake.run([]), {"latency": 3.0})


def test_every_latency_path_that_both_runs_have_is_compared_and_paced_ones_of_one_period() -> None:
    def paced(seconds: float, period: float) -> Latency:
        return fake.latency(seconds, spread=1e-3).model_copy(update={"figures": {"period": period}})

    base = fake.with_latencies(fake.record(), cold=fake.latency(1e-3, spread=1e-3), paced=paced(1e-4, 0.01))
    new = fake.with_latencies(fake.record(), cold=fake.latency(2e-3, spread=1e-3), paced=paced(1e-4, 0.01))
    verdicts = {c.path: c.verdict for c in compare_runs(fake.run([base]), fake.run([new])).latencies}
    assert list(verdicts) == ["bound", "public", "cold", "paced"]
    assert (verdicts["cold"], verdicts["paced"]) == ("SLOWER", "SAME")
    other = compare_runs(fake.run([base]), fake.run([fake.with_latencies(new, paced=paced(1e-4, 0.02))]))
    assert [c.path for c in other.latencies] == ["bound", "public", "cold"]
    assert "the period differs in 1 trial, whose paced latencies are not compared" in other.warnings


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'rnnbench\[report\]'"):
        require("no_such_package_of_any_kind", "report", "comparing runs")

    def broken(name: str) -> None:
        raise ModuleNotFoundError("no _internal", name="scipy._internal")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="no _internal") as caught:
        require("scipy.stats", "report", "comparing runs")
    assert not isinstance(caught.value, MissingExtraError)


def test_a_trial_that_was_measured_on_another_node_is_warned_of():
    base, new = (fake.run([fake.record(node=node), fake.record(chunk=1, node="a")], node) for node in ("a", "b"))
    (warning,) = [text for text in compare_runs(base, new).warnings if "node" in text]
    assert warning.startswith("other nodes measured 1 trial, the first of them a in a, b in b")
    assert not any("node" in text for text in compare_runs(base, base).warnings)


def test_a_software_device_gets_no_verdict_and_keeps_its_facts() -> None:
    base = fake.run([fake.record(bound=1e-3, device=fake.SOFTWARE_DEVICE)])
    slower = compare_runs(base, fake.run([fake.record(bound=2e-3, device=fake.SOFTWARE_DEVICE)]))
    assert (slower.latencies, slower.costs, slower.regressed) == ((), (), False)
    crashed = compare_runs(base, fake.run([fake.record(outcome="crashed", device=fake.SOFTWARE_DEVICE)]))
    assert crashed.regressed


def on_gpu(name: str, driver: str = "NVIDIA 580.1", bound: float = 1e-3) -> Run:
    device = Device(name, driver=driver, capability="sm_90", memory=1 << 36)
    return fake.run([fake.record(bound=bound, device=device)], name)


def test_trials_on_two_gpus_of_one_machine_get_no_verdict() -> None:
    """As where CUDA_VISIBLE_DEVICES names another one, or an instance of it."""
    base, new = on_gpu("H100"), on_gpu("H100 MIG 1g.10gb", bound=2e-3)
    apart = compare_runs(base, new)
    assert (apart.latencies, apart.costs, apart.regressed) == ((), (), False)
    told = "1 trial ran on two devices in the two runs, the first on H100 (sm_90) and on H100 MIG 1g.10gb (sm_90): "
    assert f"{told}latencies, builds and memory are not compared there" in apart.warnings
    together = compare_runs(base, new, across_machines=True)
    assert [change.verdict for change in together.latencies] == ["SLOWER", "SLOWER"]
    assert f"{told}every result compares the devices too there" in together.warnings
    assert not any("devices" in text for text in compare_runs(base, base).warnings)


def test_processors_and_devices_that_no_driver_told_are_compared() -> None:
    """The machine says which processor it has."""
    base, new = (fake.run([fake.record(device=device)]) for device in (Device("a processor"), Device("another one")))
    assert compare_runs(base, new).latencies
    assert compare_runs(on_gpu("H100"), fake.run([fake.record(device=None)])).latencies


def test_another_driver_of_a_gpu_is_told() -> None:
    result = compare_runs(on_gpu("H100"), on_gpu("H100", driver="NVIDIA 590.2"))
    assert result.latencies
    assert any(text.startswith("drivers of the device differ in 1 trial") for text in result.warnings)


@pytest.mark.parametrize("disbelieved", ["base", "new"])
def test_figures_that_are_not_believed_in_one_run_get_no_verdict(disbelieved: str) -> None:
    finding = Finding(kind=FindingKind.TIME, detail="too fast", disbelieved=True)
    changes: dict[str, Any] = {"findings": (finding,)}
    base, new = (fake.record(bound=1e-3, **changes if side == disbelieved else {}) for side in ("base", "new"))
    result = compare_runs(fake.run([base], "base"), fake.run([new], "new"))
    assert (result.latencies, result.costs) == ((), ())
    assert [one.run for one in result.not_believed] == [disbelieved]


def test_programs_of_another_origin_or_arithmetic_are_told() -> None:
    old = fake.record()
    artifact = old.artifact.model_copy(update={"origin": "authored", "math": "approximate"})
    warnings = compare_runs(fake.run([old], "old"), fake.run([fake.record(artifact=artifact)], "new")).warnings
    assert "origins of programs differ in 1 trial, in the first of them library in old, authored in new" in warnings
    assert "kinds of arithmetic differ in 1 trial, in the first of them exact in old, approximate in new" in warnings


@pytest.mark.parametrize(("disturbed", "told"), [(5, True), (3, False), (None, False)])
def test_a_run_of_which_many_blocks_were_disturbed_is_named(disturbed: int | None, told: bool) -> None:
    record = fake.record()
    sampling = {"blocks": 40, "disturbed_blocks": disturbed}
    latencies = {
        path: one.model_copy(update={"sampling": one.sampling.model_copy(update=sampling)})
        for path, one in record.timing.latency.items()
    }
    timing = record.timing.model_copy(update={"latency": latencies})
    disturbed_record = record.model_copy(update={"timing": timing})
    for sides, name in (((disturbed_record, record), "old"), ((record, disturbed_record), "new")):
        (old, new) = sides
        warnings = compare_runs(fake.run([old], "old"), fake.run([new], "new")).warnings
        expected = f"other processes, or the machine's host, disturbed 12 % of the compared blocks of {name}"
        assert sum(expected in warning for warning in warnings) == told, warnings


def test_a_tenth_of_the_blocks_is_many() -> None:
    record = fake.record()
    latencies = {
        path: one.model_copy(update={"sampling": one.sampling.model_copy(update={"blocks": 40, "disturbed_blocks": 4})})
        for path, one in record.timing.latency.items()
    }
    disturbed = record.model_copy(update={"timing": record.timing.model_copy(update={"latency": latencies})})
    assert any("disturbed 10 % of" in text for text in compare_runs(fake.run([record]), fake.run([disturbed])).warnings)


def test_only_the_two_sides_of_one_comparison_are_sides_of_it() -> None:
    def side(name: str, of: str | None, started: str) -> Run:
        return fake.run([fake.record()], name, side=of, started=started)

    a = side("20260131T120000Z-one-a+two-a", "a", "2026-01-31T12:00:00.999+00:00")
    b = side("20260131T120000Z-one-b+two-b", "b", "2026-01-31T12:00:00.999+00:00")
    assert compare_runs(a, b).of_ab
    later = side("20260131T120001Z-one-b+two-b", "b", "2026-01-31T12:00:01.000+00:00")
    whole = side("20260131T120000Z-one+two", None, a.info.started)
    for other in (a, later, whole):
        assert not compare_runs(a, other).of_ab
    older = [side(f"20260131T120000Z-one-{name}", name, f"2026-01-31T12:00:00.00{name == 'b':d}") for name in "ab"]
    assert compare_runs(*older).of_ab, "their sides began one after the other, within a second"


@pytest.mark.parametrize("broken", ["base", "new"])
def test_a_trial_that_was_not_ok_in_one_run_has_no_verdict(broken: str) -> None:
    base, new = (
        fake.run([fake.record(bound=1e-3, outcome="nonconforming" if side == broken else "ok")])
        for side in ("base", "new")
    )
    result = compare_runs(base, new)
    assert (result.latencies, result.costs, result.trials) == ((), (), 1)


@pytest.mark.parametrize("played", ["base", "new"])
def test_a_device_that_is_played_on_one_side_alone_gets_no_verdict(played: str) -> None:
    base, new = (
        fake.run([fake.record(bound=1e-3, device=fake.SOFTWARE_DEVICE if side == played else None)])
        for side in ("base", "new")
    )
    assert compare_runs(base, new).latencies == ()


def test_a_change_has_the_seconds_of_each_side() -> None:
    result = compare_runs(
        fake.run([fake.record(bound=1e-3, spread=0.0)]), fake.run([fake.record(bound=2e-3, spread=0.0)])
    )
    bound = result.latencies[0]
    assert (bound.path, bound.base, bound.new) == ("bound", pytest.approx(1e-3), pytest.approx(2e-3))
    assert bound.ratio == pytest.approx(2.0)


def test_blocks_of_which_nothing_is_known_are_not_counted() -> None:
    latency = fake.record().timing.latency["bound"]

    def of(blocks: int, disturbed: int | None) -> Latency:
        sampling = latency.sampling.model_copy(update={"blocks": blocks, "disturbed_blocks": disturbed})
        return latency.model_copy(update={"sampling": sampling})

    assert disturbed_share([of(10, 2), of(90, None), of(10, 1)]) == pytest.approx(0.15)
    assert disturbed_share([of(90, None)]) is None
    assert disturbed_share([]) is None


def test_runs_of_two_machines_are_that_also_without_a_trial_in_common() -> None:
    base = fake.run([fake.record(chunk=1)], "old")
    new = fake.run([fake.record(chunk=2)], "new", machine={**fake.info().machine, "cpu": "Fake CPU 9001"})
    result = compare_runs(base, new, across_machines=True)
    assert (result.trials, result.two_machines) == (0, True)
    assert "slower" not in result.fail_on


def test_trials_that_share_a_measurement_in_both_runs_are_trials_of_both_runs() -> None:
    own = fake.record(bound=1e-3)
    shared = fake.record(time="unrolled", bound=None, same_as=own.trial)
    result = compare_runs(fake.run([own, shared]), fake.run([own, shared]))
    assert (result.trials, result.shared) == (2, 1)


def test_what_a_comparison_never_looks_at_can_be_left_out_of_its_records() -> None:
    failing = {"values": CheckResult(verdict="fail"), "reset": CheckResult(verdict="pass")}
    olds = [fake.record(bound=1e-3), fake.record(chunk=4, outcome="nonconforming")]
    news = [fake.record(bound=2e-3), olds[1].model_copy(update={"conformance": failing})]
    whole, small = (
        compare_runs(fake.run(map(kept, olds), "old"), fake.run(map(kept, news), "new"))
        for kept in (lambda record: record, compared_record)
    )
    assert whole == small
    assert [change.fact for change in small.facts] == ["failed_checks"]


def test_a_comparison_keeps_no_common_trial_of_its_records() -> None:
    record = fake.record().model_copy(update={"common_trial": CommonTrial(trial="a", group=0, groups=2, bound=1e-3)})
    assert compared_record(record).common_trial is None


def test_all_differences_of_machines_are_one_warning() -> None:
    base = fake.run([fake.record()], "old", machine={"cpu": "A", "cores": 2, "kernel": "6"})
    new = fake.run([fake.record()], "new", machine={"cpu": "B", "cores": 4, "kernel": "6"})
    warnings = compare_runs(base, new, across_machines=True).warnings
    assert "machines differ in cpu: A in old, B in new; cores: 2 in old, 4 in new" in warnings
