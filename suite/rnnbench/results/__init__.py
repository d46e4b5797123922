"""Results: what a run leaves behind, and what is read from it. Reports, exports and other users build on this package.

    record, timing, artifact, run_info   the types: `Record`, `Latency`, `Artifact`, `RunInfo`; start here
    finding                              a further part of a record; `frozen_model` is the base of all types
    lowered_form, claims                 the form of a program, and claims that contradict each other
    journal, samples, compressed         writing a run: `append_record`, `write_info`, `save_samples`
    run, store, records_file             reading one: `read_run`, `Store`, `Run`; lines that are no records
    reading, migrations                  one text as a type; older schemas are upgraded
    shards, merge, merged_run            shards of one plan, their merge, the run that they are then (`docs/fleet.md`)
    rows, columns, figure_columns        flat rows with documented columns (`docs/results.md`)
    versions, tables                     parts and forms of rows: versions as text, tables of DuckDB
    exports                              a run in the formats of other tools (`docs/exports.md`)
    views, ranking, fits                 workloads, places, fits of cost and growth
    pairs_of_strategies                  strategies that differ in one axis: `strategy_pairs`
    device_crossings                     which device is faster, and from where on
    compare, compare_json                two runs: verdicts on latencies, other measures, and what is no number
    comparison_warnings                  reasons to distrust a comparison
    costs, fact_changes, fact_words      these other measures, and what changed that is no number
    verdict, thresholds, fail_on         FASTER, SLOWER, SAME, UNDECIDED; what matters, and what fails a command
    looks                                the intervals of a verdict that is looked for after every pair of processes
    identity                             what must be equal for runs to be compared
    dates                                times of runs that a wrong clock gave
    damage, text                         figures that cannot be, taken out; text from outside, made safe

From other rooms it imports only declarations: the latency paths and metrics of `measure`, and `devices.Device`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.results.artifact import Artifact, Math, OperationStage, Origin
    from rnnbench.results.claims import Claim, Contradiction, contradictions
    from rnnbench.results.columns import Column, Value
    from rnnbench.results.compare import COMPARED_PATHS, Comparison, LatencyChange, compare_runs, compared_record
    from rnnbench.results.compare_json import comparison_json
    from rnnbench.results.compressed import compress_records
    from rnnbench.results.costs import COSTS, FALLS, RISES, CostChange, scatter_of
    from rnnbench.results.damage import MOST, sound
    from rnnbench.results.dates import wrong_date, wrong_dates
    from rnnbench.results.device_crossings import (
        FASTEST,
        Crossing,
        OnDevices,
        Spell,
        batch_crossings,
        chunk_crossings,
        device_label,
        on_several_devices,
        subject_of,
    )
    from rnnbench.results.fact_changes import FactChange
    from rnnbench.results.fact_words import FACTS, Fact, fact_direction, fact_sentence
    from rnnbench.results.fail_on import FAIL_ON, parse_fail_on
    from rnnbench.results.finding import Finding, FindingKind, not_believed
    from rnnbench.results.fits import (
        LEAST_POINTS,
        TELLING_POINTS,
        CallCost,
        Estimate,
        Growth,
        by_chunk,
        calls_until_paid,
        fit_call,
        fit_growth,
        growth_word,
    )
    from rnnbench.results.frozen_model import FrozenModel
    from rnnbench.results.identity import differences, earlier_fingerprint, fingerprint, machine_differences
    from rnnbench.results.journal import INFO, TRIALS, append_record, require_appendable, unwritable, write_info
    from rnnbench.results.looks import LOOKS
    from rnnbench.results.lowered_form import LoweredForm, is_lowered_form, lowered_parts, parse_lowered
    from rnnbench.results.merge import MergedRun, Merging, merge_shards, shard_folders, write_merged
    from rnnbench.results.merged_run import machine_key, split_by_machine
    from rnnbench.results.pairs_of_strategies import StrategyPair, strategy_pairs
    from rnnbench.results.ranking import (
        RATIO_CONFIDENCE,
        Place,
        Ranking,
        judge_bound,
        rank,
    )
    from rnnbench.results.reading import StoreError
    from rnnbench.results.record import (
        FAILURES,
        NO_ANSWER,
        SCHEMA,
        CheckResult,
        CheckVerdict,
        CommonTrial,
        DeviceState,
        EnergyReading,
        Environment,
        ExpectedFailureResult,
        LatencyFloor,
        Limit,
        MemoryUse,
        Outcome,
        Params,
        Record,
        SupportResult,
        worst_rounding,
    )
    from rnnbench.results.rows import COLUMNS, Row, columns_table, row
    from rnnbench.results.run import Run, data_frame
    from rnnbench.results.run_info import Conditions, NodeInfo, RunInfo, case_file_in, settings_in, words_of
    from rnnbench.results.samples import SAMPLE_COLUMNS, SAMPLES_CAP, read_samples, samples_file, save_samples
    from rnnbench.results.shards import ShardInfo, WholePlan, write_whole_plan
    from rnnbench.results.store import Store, read_info, read_run, run_name
    from rnnbench.results.tables import COLUMN_TYPES, FIGURE, TableRows, make_table, open_database, parquet, sql_literal
    from rnnbench.results.text import file_name, spreadsheet, visible, writable
    from rnnbench.results.thresholds import THRESHOLDS, parse_thresholds
    from rnnbench.results.timing import (
        MANY_DISTURBED,
        STEPS_PER_S,
        DispatchFloor,
        Latency,
        Sampling,
        Server,
        SideLatency,
        StoppedBy,
        Streams,
        StreamTest,
        Timing,
        Warmup,
        disturbed_share,
    )
    from rnnbench.results.verdict import (
        ERROR_RATE,
        SMALLEST,
        Judgement,
        Verdict,
        judge_apart,
        judge_once,
        judge_pairs,
        pair_ratio,
        pair_scatter,
    )
    from rnnbench.results.versions import by_package, parse_versions, version_of, versions_text
    from rnnbench.results.views import (
        ORIGIN_MEANS,
        ORIGINS,
        Entry,
        Family,
        View,
        Workload,
        short_names,
        size_label,
        view_runs,
    )

__getattr__, __all__ = lazy_names(__name__, __file__)
