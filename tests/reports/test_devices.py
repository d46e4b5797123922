"""Several devices in one report. The records are synthetic: no GPU made them."""

from __future__ import annotations

import io
from pathlib import Path

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.devices import KINDS, Device
from rnnbench.reports.costs import memory_table, metrics_table
from rnnbench.reports.device_state import device_facts, device_state_table, device_warnings, unmeasured_warnings
from rnnbench.reports.devices import crossing_tables, device_in_words, device_tables
from rnnbench.reports.energy import energy_table
from rnnbench.reports.findings import missing_table, not_run_table
from rnnbench.reports.latencies import software_device_table
from rnnbench.reports.markdown import page
from rnnbench.reports.terminal import print_summary
from rnnbench.results import DeviceState, EnergyReading, Record
from rnnbench.results.damage import without_impossible
from rnnbench.results.store import Run
from rnnbench.results.views import Entry, View, view_runs

SYNTHETIC_GPU = Device("synthetic GPU", "synthetic driver", "sm_00")


def on(device: str, chunk: int, micros: float, batch: int = 1, backend: str = "fakemlir", **changes) -> Record:
    """A synthetic record: a call of `chunk` steps took so many µs on that kind of device."""
    made = fake.record(
        backend,
        "ops" if backend == "fakelib" else "linalg",
        chunk=chunk,
        bound=micros * 1e-6,
        **{"spread": 0.001, **changes},
    )
    params = made.params.model_copy(update={"device": device, "batch": batch})
    bound = made.timing.latency["bound"]
    latency = {"bound": fake.with_interval(bound)}
    return made.model_copy(
        update={
            "trial": f"{made.trial}-{device}-b{batch}",
            "params": params,
            "device": None if device == "cpu" else SYNTHETIC_GPU,
            "timing": made.timing.model_copy(update={"latency": latency}),
        }
    )


def view(*records: Record) -> View:
    return view_runs([run(*records)])


def run(*records: Record) -> Run:
    return Run(Path("synthetic"), fake.info(), records, ())


CROSSING = [
    *(on("cpu", chunk, 10.0 * chunk) for chunk in (1, 4, 16, 64)),
    *(on("cuda", chunk, micros) for chunk, micros in ((1, 30.0), (4, 40.0), (16, 80.0), (64, 200.0))),
]
"""On the processor each step takes 10 µs; on the GPU there is a cost of the call."""
ALONG_BATCH = [
    *(on("cpu", 1, 10.0 * batch, batch) for batch in (1, 2, 8, 32)),
    *(on("cuda", 1, 30.0 + batch / 8, batch) for batch in (1, 2, 8, 32)),
]


def test_a_report_names_the_devices_that_its_trials_ran_on_but_the_processor() -> None:
    shown = view(on("cuda", 1, 30.0), on("cuda", 4, 40.0))
    words = "synthetic GPU (sm_00; synthetic driver)"
    assert page(shown, [], "").count(words) == 2, "once as an answer, and once with the machine"
    stream = io.StringIO()
    print_summary(run(on("cuda", 1, 30.0)), Console(file=stream, width=200))
    assert f"On {words}." in stream.getvalue()
    processor = on("cpu", 1, 10.0).model_copy(update={"device": Device("a processor")})
    assert "a processor" not in page(view(processor), [], "")
    assert f"On the processor, and on {words}." in page(view(processor, on("cuda", 1, 30.0)), [], "")


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (Device("A"), "A"),
        (Device("A", "driver 1", "sm_90", 80 << 30), "A (sm_90, 80.0 GiB; driver 1)"),
        (Device("A", driver="driver 1"), "A (driver 1)"),
    ],
)
def test_a_device_is_named_with_what_its_driver_tells(device: Device, words: str) -> None:
    assert device_in_words(device) == words


def test_the_facts_of_a_trial_s_device_are_those_that_were_measured() -> None:
    made = on("cuda", 4, 40.0)
    assert device_facts(made) == [("device", "synthetic GPU (sm_00; synthetic driver)")]
    full = made.model_copy(
        update={
            "device_state": DeviceState(clock=(1.98e9, 1.98e9), temperature=(38.0, 41.0), power=(124.0, 190.0)),
            "memory": made.memory.model_copy(update={"device": 8 << 20, "allocated": 1 << 20, "allocated_peak": None}),
            "metrics": {"device_time_per_step": 3.19e-6},
        }
    )
    assert device_facts(full)[1:] == [
        ("clock", "1,980 MHz"),
        ("temperature", "38 to 41 °C"),
        ("power", "124 to 190 W"),
        (
            "memory",
            "8.00 MiB of the process, less an empty session; 1.00 MiB of the program, by the runtime's own count",
        ),
        ("by its own events, device/step", "3.19 µs"),
    ]
    assert device_facts(on("cpu", 4, 40.0)) == []


def by_title(shown: View) -> dict[str, dict[str, tuple[tuple[str, ...], ...]]]:
    return {title: {table.title: table.rows for table in tables} for title, tables in device_tables(shown)}


def test_one_table_has_a_row_by_program_and_device() -> None:
    ((title, tables),) = by_title(view(*CROSSING)).items()
    assert title == "fake_case: LSTM, input 64, hidden 128, batch 1, float32, stream of 128 steps"
    cpu, cuda = tables["Bound latency per step, by device"]
    assert cpu[:3] == ("fakemlir:linalg", "looped-stitched", "cpu")
    assert cuda[2] == "cuda"
    assert len(cpu) == 3 + 4


def test_a_program_that_failed_on_one_device_says_so_there() -> None:
    crashed = on("cuda", 4, 40.0, backend="fakelib").model_copy(update={"outcome": "crashed"})
    wrong = on("cuda", 1, 30.0, backend="fakelib", outcome="nonconforming")
    (tables,) = by_title(view(*CROSSING, on("cpu", 4, 50.0, backend="fakelib"), crashed, wrong)).values()
    rows = {row[0::2][:2]: row[3:] for row in tables["Bound latency per step, by device"]}
    assert rows["fakelib:ops", "cuda"] == ("nonconforming", "crashed", "—", "—")
    assert rows["fakelib:ops", "cpu"] == ("—", "12.5 µs", "—", "—")


def test_a_row_of_findings_names_the_device_and_the_batch() -> None:
    crashed = on("cuda", 4, 40.0, batch=32).model_copy(
        update={"outcome": "crashed", "stage": "sample", "reason": "died"}
    )
    (row,) = not_run_table(view(on("cpu", 4, 10.0), crashed)).rows
    assert row[4] == "hidden 128; chunk 4; batch 32; on cuda"
    assert "hidden 128; chunk 4; batch 32; on cuda" in printed(crashed)


def test_energy_of_two_devices_has_a_table() -> None:
    def with_energy(record: Record, joules: float) -> Record:
        return record.model_copy(update={"metrics": {"energy_per_step": joules, "energy_power": 100.0}})

    used = [with_energy(on("cpu", 1, 10.0), 1e-3), with_energy(on("cuda", 1, 30.0), 3e-3)]
    (tables,) = by_title(view(*used)).values()
    assert [row[2:] for row in tables["Energy per step, by device"]] == [
        ("cpu", "1.00 mJ (100 W)"),
        ("cuda", "3.00 mJ (100 W)"),
    ]
    (tables,) = by_title(view(used[0], on("cuda", 1, 30.0))).values()
    assert tables["Energy per step, by device"] == ()


def test_the_answer_names_the_faster_device() -> None:
    answer, _ = page(view(*CROSSING), ()).split("## Ranking")
    assert "float32, stream of 128 steps, on several devices**" in answer
    assert "The faster of cpu and cuda: cpu at chunk 1; level at chunk 4; cuda at chunk 16 to 64." in answer
    assert "Each device has its fastest program; see *Devices*." in answer
    assert "on several devices" not in page(view(on("cuda", 1, 30.0)), ())


def test_three_devices_have_one_answer_with_a_sentence_for_each_two() -> None:
    text = page(view(on("cpu", 1, 10.0), on("cuda", 1, 20.0), on("vulkan", 1, 40.0)), ())
    assert text.count("on several devices**") == 1
    assert "The faster of cpu and cuda: cpu at chunk 1. The faster of cpu and vulkan: cpu at chunk 1." in text


def test_numbers_of_threads_of_one_device_are_not_compared_as_devices() -> None:
    def with_threads(record: Record, threads: int) -> Record:
        params = record.params.model_copy(update={"threads": threads})
        return record.model_copy(update={"trial": f"{record.trial}-t{threads}", "params": params})

    of_processor = [with_threads(on("cpu", 1, 20.0 / threads), threads) for threads in (1, 2, 4)]
    (tables,) = by_title(view(*of_processor, on("cuda", 1, 40.0))).values()
    compared = {devices for _, devices, _ in tables["Faster device by chunk"]}
    assert compared == {f"{one} and cuda" for one in ("cpu", "cpu with 2 threads", "cpu with 4 threads")}


def test_the_chunk_is_named_at_which_one_overtakes_the_other() -> None:
    (tables,) = by_title(view(*CROSSING)).values()
    fastest, program = tables["Faster device by chunk"]
    assert fastest == ("fastest of each", "cpu and cuda", "cpu at chunk 1; level at chunk 4; cuda at chunk 16 to 64")
    assert program[0] == "fakemlir:linalg looped-stitched"


def test_the_batch_is_named_at_which_one_overtakes_the_other() -> None:
    first, *others = by_title(view(*ALONG_BATCH)).values()
    fastest, _ = first["Faster device by batch, 1 step per call"]
    assert fastest[2] == "cpu at batch 1 to 2; cuda at batch 8 to 32"
    assert len(others) == 3
    assert all("Faster device by batch, 1 step per call" not in tables for tables in others)


@pytest.mark.parametrize(
    ("changes", "faster"),
    [
        ({}, "cpu at chunk 1"),
        ({"processes": 1}, "undecided at chunk 1"),
        ({"spread": 0.3, "seed": 1}, "undecided at chunk 1"),
    ],
    ids=["steady", "single processes", "processes that scatter"],
)
def test_without_a_verdict_no_device_is_called_faster_or_level(changes: dict[str, float], faster: str) -> None:
    (tables,) = by_title(view(on("cpu", 1, 10.0, **changes), on("cuda", 1, 13.0, **changes))).values()
    assert tables["Faster device by chunk"][0][2] == faster


def test_the_fastest_program_of_each_device_counts_and_no_kernel() -> None:
    slow = on("cpu", 1, 50.0, backend="fakelib")
    kernel = on("cpu", 1, 1.0, time="unrolled")
    kernel = kernel.model_copy(update={"artifact": kernel.artifact.model_copy(update={"origin": "kernel"})})
    (tables,) = by_title(view(slow, kernel, on("cpu", 1, 10.0), on("cuda", 1, 20.0))).values()
    assert tables["Faster device by chunk"][0] == ("fastest of each", "cpu and cuda", "cpu at chunk 1")


@pytest.mark.parametrize(
    "records",
    [
        [on("cpu", 1, 10.0), on("cpu", 4, 40.0)],
        [on("cpu", 1, 10.0), on("cuda", 1, 5.0, hidden=512)],
        [on("cpu", 1, 10.0), on("cuda", 1, 5.0, outcome="nonconforming")],
        [on("cpu", 1, 10.0), on("vulkan", 1, 5.0).model_copy(update={"device": fake.SOFTWARE_DEVICE})],
    ],
    ids=["one device", "other models", "wrong numbers", "a software device"],
)
def test_without_two_devices_nothing_is_shown(records: list[Record]) -> None:
    shown = view(*records)
    assert list(device_tables(shown)) == list(crossing_tables(shown)) == []
    assert "## Devices" not in page(shown, ())
    assert "Faster device" not in printed(*records)


def printed(*records: Record) -> str:
    stream = io.StringIO()
    print_summary(run(*records), Console(file=stream, width=160))
    return stream.getvalue()


def test_report_and_terminal_show_it() -> None:
    text = page(view(*CROSSING), ())
    assert "## Devices" in text
    assert "cpu at chunk 1; level at chunk 4; cuda at chunk 16 to 64" in text
    assert "cpu at chunk 1; level at chunk 4; cuda at chunk 16 to 64" in " ".join(printed(*CROSSING).split())


def measured(disturbed: int = 0, **changes) -> Record:
    state = {"clock": (1.755e9, 1.98e9), "temperature": (34.0, 60.0), "power": (71.0, 350.0), **changes}
    metrics = {"open_files": 9.0, "energy_per_step": 1.5e-3, "energy_power": 320.0}
    record = on("cuda", 16, 80.0)
    return record.model_copy(
        update={
            "device_state": DeviceState(**state),
            "metrics": metrics,
            "energy": EnergyReading(source="a synthetic counter", blocks=3, disturbed_blocks=disturbed),
            "memory": record.memory.model_copy(update={"device": 300 << 20}),
        }
    )


def entries(*records: Record) -> list[Entry]:
    return [Entry(record, record) for record in records]


def test_the_energy_of_a_step_has_a_table_of_its_own() -> None:
    table = energy_table(entries(measured(), on("cpu", 16, 80.0)))
    assert table.rows == (("fakemlir:linalg", "looped-stitched", "1.50 mJ (320 W)"),)
    assert "a synthetic counter" in table.note
    assert energy_table(entries(measured(disturbed=1))).rows[0][2] == "1.50 mJ (320 W) disturbed"
    assert metrics_table(entries(measured())).columns == ("program", "strategy", "open files")
    assert energy_table(entries(on("cpu", 1, 10.0))).rows == ()
    assert "1.50 mJ (320 W)" in printed(measured())


def test_memory_on_the_device_is_a_column_where_it_was_measured() -> None:
    with_device, without = memory_table(entries(measured())), memory_table(entries(on("cpu", 1, 10.0)))
    assert dict(zip(with_device.columns, with_device.rows[0], strict=True))["on device"] == "300 MiB"
    assert "on device" not in without.columns
    record = measured()
    counted = record.model_copy(
        update={
            "memory": record.memory.model_copy(update={"device": None, "allocated": 1 << 20, "allocated_peak": 3 << 20})
        }
    )
    shown = memory_table(entries(counted))
    cells = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert (cells["allocated"], cells["allocated at most"]) == ("1.00 MiB", "3.00 MiB")
    assert "by the runtime's own count" in shown.note
    assert "on device" not in shown.columns


def test_what_the_device_did_stands_beside_the_trial() -> None:
    table = device_state_table(entries(measured(moved_blocks=2), on("cpu", 1, 10.0)))
    ((*_, clock, temperature, power, moved, held_down, shared),) = table.rows
    assert (clock, temperature, power) == ("1,755 to 1,980 MHz", "34 to 60 °C", "71 to 350 W")
    assert (moved, held_down, shared) == ("2 of 0", "0 of 0", "0 of 0")


def test_a_disturbed_device_is_a_warning() -> None:
    disturbed = measured(moved_blocks=2, throttled=("power cap",), throttled_blocks=1, others=("game (PID 7)",))
    assert device_warnings(view(disturbed)) == [
        "the clock of the cuda device was held down while trials ran: power cap",
        "the clock of the cuda device changed during 2 blocks",
        "other processes were on the cuda device: game (PID 7)",
    ]
    assert device_warnings(view(measured())) == []


def test_a_warning_names_a_few_of_many_processes() -> None:
    (warning,) = device_warnings(view(measured(others=tuple(f"game (PID {pid})" for pid in range(5)))))
    assert warning.endswith("game (PID 0), game (PID 1), game (PID 2) and 2 more")


def test_what_was_not_measured_on_this_machine_is_a_warning_with_its_reason() -> None:
    refused = on("cpu", 1, 10.0).model_copy(update={"unmeasured": {"energy": "Only root may read it."}})
    shown = view(refused)
    assert unmeasured_warnings(shown) == ["energy was not measured: Only root may read it."]
    assert ("energy", "Only root may read it.", "1") in missing_table(shown).rows
    assert "energy was not measured: Only root may read it." in page(shown, ())


def test_a_figure_that_some_programs_lack_names_them_without_the_log_of_their_process() -> None:
    reason = "crashed while it was measured: died of SIGABRT; its log ends: terminate called | what(): no"
    lost = on("cuda", 4, 40.0, backend="fakelib").model_copy(update={"unmeasured": {"device_time": reason}})
    (warning,) = unmeasured_warnings(view(on("cuda", 1, 30.0), lost))
    assert warning == (
        f"device time of {lost.target} {lost.strategy} was not measured: crashed while it was measured: died of SIGABRT"
    )


def test_what_no_such_device_can_is_no_warning() -> None:
    software = on("vulkan", 1, 5.0).model_copy(update={"unmeasured": dict(KINDS["vulkan"].unmeasured)})
    assert unmeasured_warnings(view(software)) == []


def test_a_state_that_cannot_be_is_left_out() -> None:
    clean, names = without_impossible(measured(clock=(float("nan"), 1e9), power=(1e20, 2e20)))
    assert clean.device_state.clock is None
    assert "device_state.clock" in names


def test_a_wrong_program_on_a_software_device_is_not_said_to_be_right() -> None:
    right, wrong = (fake.record(outcome=outcome, device=fake.SOFTWARE_DEVICE) for outcome in ("ok", "nonconforming"))
    assert len(software_device_table([Entry(right, right)]).rows) == 1
    assert software_device_table([Entry(wrong, wrong)]).rows == ()
