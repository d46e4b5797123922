"""The command as a whole: its help, its start, and how it answers mistakes."""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from harness_command import records_in
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench import cli
from rnnbench.cli.option_types import Duration, GivenPath, GivenText, Number, Share, WholeNumber
from rnnbench.results import read_run, write_info


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from rnnbench.cli import main\n"
        "sys.argv = ['rnnbench', '--help']\n"
        "try:\n    main()\n"
        "finally:\n    print(sorted({'numpy', 'pydantic', 'yaml', 'rich', 'scipy', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.splitlines()[-1] == "[]"
    for command in cli.cli.commands:
        assert command in done.stdout


def commands(of: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Each command with the words that call it."""
    if isinstance(of, click.Group):
        for name, command in of.commands.items():
            yield from commands(command, f"{path} {name}")
    else:
        yield path, of


EVERY_COMMAND = pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=each[0].strip()) for each in commands(cli.cli)]
)


@EVERY_COMMAND
def test_a_command_that_takes_an_argument_has_an_example_that_it_understands(path: str, command: click.Command) -> None:
    text = re.sub(r"\\\n *", "", command.help or "")
    examples = re.findall(rf"Example:\s+rnnbench{path} (.*)", text)
    takes_an_argument = any(isinstance(each, click.Argument) for each in command.params)
    assert len(examples) == 1 or not takes_an_argument
    for example in examples:
        command.make_parser(click.Context(command)).parse_args(shlex.split(example))


def wrong_values(option: click.Option) -> Iterator[str]:
    """What is no value of it, whatever else is given: the words behind the command."""
    name = max(option.opts, key=len)
    yield f"{name}=x" if option.is_flag else name
    if isinstance(option.type, WholeNumber | Number | Share | Duration | click.Choice):
        yield from (f"{name}={value}" for value in ("", "nan", "-5", "[red]1[/red]", "1\nx", "$(id)", "²"))
    elif isinstance(option.type, GivenPath | GivenText):
        yield from (f"{name}={value}" for value in ("", *(["x" * 5000] if isinstance(option.type, GivenPath) else [])))


@EVERY_COMMAND
def test_every_option_tells_a_value_that_it_cannot_have_in_one_sentence_with_what_it_can(
    rnnbench, path: str, command: click.Command
) -> None:
    for option in (each for each in command.params if isinstance(each, click.Option)):
        for wrong in wrong_values(option):
            said = rnnbench(*path.split(), wrong, status=2)
            usage, error = said.stderr.split("Error: ")
            assert said.stdout == ""
            assert usage.startswith("Usage: "), wrong
            assert error.count("\n") == 1, wrong
            assert max(option.opts, key=len) in error or option.opts[0] in error
            advice = r"expected|is not one of|longer than a path|requires an argument|does not take a value"
            assert re.search(advice, error), (wrong, error)


@EVERY_COMMAND
def test_an_option_that_takes_one_value_is_given_once(rnnbench, path: str, command: click.Command) -> None:
    """Click takes the last value, and the first one would be lost without a word."""
    for option in command.params:
        if isinstance(option, click.Option) and not option.multiple and not option.is_flag:
            name = max(option.opts, key=len)
            said = rnnbench(*path.split(), name, "1", name, "2", status=2).stderr
            assert said.endswith(f"Error: {name} is given 2 times and takes one value; give it once\n")


def test_help_lists_each_command_in_one_section():
    listed = [command.name for commands in cli.COMMANDS.values() for command in commands]
    assert sorted(listed) == sorted(cli.cli.commands)
    shown = cli.cli.get_help(click.Context(cli.cli, info_name="rnnbench"))
    assert [title for title in cli.COMMANDS if f"\n{title}:\n" in shown] == list(cli.COMMANDS)


def test_every_command_has_one_file_of_its_name():
    shared = {"options", "option_types", "selection", "ending", "exit_status", "output", "one_value"}
    of_history = {"backfill", "confirm"}
    assert of_history < set(cli.cli.commands["history"].commands)
    assert {module.name for module in pkgutil.iter_modules(cli.__path__)} - shared - of_history == set(cli.cli.commands)
    for name, command in cli.cli.commands.items():
        assert command.callback.__module__ == f"rnnbench.cli.{name}"
        assert command.get_short_help_str(), f"{name} has a line of help"


def test_as_a_process_of_its_own_it_ends_with_its_status(folder):
    command = [sys.executable, "-m", "rnnbench", "list", "tiny.yaml", "--backend", "fakee"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.fixture
def another(finished, folder):
    """A copy of the finished run as a run of its own."""
    (run,) = (finished[0] / "results").iterdir()
    copy = shutil.copytree(run, folder / "another")
    write_info(copy, read_run(copy).info.model_copy(update={"command": ("another",)}))
    return copy


def compared(folder, another, **options):
    """A command that prints a table, in a process of its own."""
    command = [sys.executable, "-m", "rnnbench", "compare", "latest", str(another)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S, **options
    )


@pytest.mark.parametrize("closed", [*for_proof(((0, 2),)), (1,)], ids=["input and errors", "output"])
def test_a_closed_standard_stream_is_as_good_as_the_null_device(finished, another, closed):
    done = compared(finished[0], another, preexec_fn=lambda: [os.close(number) for number in closed])
    assert (done.returncode, done.stderr) == (0, "")
    assert ("Latency per call" in done.stdout) == (1 not in closed)


def test_an_output_that_is_open_for_reading_alone_is_as_good_as_the_null_device(finished, another):
    with open(os.devnull) as null:
        done = compared(finished[0], another, preexec_fn=lambda: os.dup2(null.fileno(), 1))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_is_shown_in_an_encoding_without_its_signs_and_in_columns_of_no_number(finished, another):
    done = compared(finished[0], another, env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "UNDECIDED" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run",), "give at least one case file"),
        (("run", "missing.yaml", "--backend", "fake"), "missing.yaml"),
        (("run", "tiny.yaml", "--backend", "fakee"), "did you mean 'fake'?"),
        (("run", "tiny.yaml", "--backend", "fake:honst"), "did you mean 'honest'?"),
        (("run", "tiny.yaml", "--backend", "absent"), "pip install 'rnnbench[absent]'"),
        (("run", "tiny.yaml", "--backend", ","), "--backend is empty"),
        (("run", "tiny.yaml", "--backend", "fake", "--set", "model.hiden=3"), "did you mean 'hidden'?"),
        (("run", "tiny.yaml", "--backend", "fake", "--only", "00000000"), "00000000"),
        (("run", "tiny.yaml", "--backend", "fake", "--max-trials", "3"), "--max-trials"),
        (("run", "tiny.yaml", "--backend", "fake", "--max-trials", "0"), "--max-trials"),
        (("run", "tiny.yaml", "--processes", "0"), "expected a whole number from 1 to 100, got '0'"),
        (("list", "tiny.yaml", "--max-trials", "x"), "expected a whole number from 1 on, got 'x'"),
        (("check", "tiny.yaml", "--endurance", "nan"), "expected a number from 0 to 3,600, got 'nan'"),
        (("check", "tiny.yaml", "--endurance", "long"), "expected a number from 0 to 3,600, got 'long'"),
        (("ab", "tiny.yaml", "--threshold", "nan"), "from 0.1% to 90%, such as 3% or 0.03, got 'nan'"),
        (("ab", "tiny.yaml", "--threshold", "300%"), "from 0.1% to 90%, such as 3% or 0.03, got '300%'"),
        (("new", "lstm", "-o", "tiny.yaml/my.yaml"), "cannot use tiny.yaml: File exists; see what lies there"),
        (("new", "lstm", "-o", "/proc/my.yaml"), "cannot use /proc/my.yaml: no file can be made in this folder"),
        (
            ("new", "lstm", "-o", "my.yaml", "--set", "time=1"),
            "--set completes a model file, and lstm is not a model file",
        ),
        (("run", "--resume", "nothing"), "nothing"),
        (("run", "tiny.yaml", "--resume", "latest"), "do not give CASE…"),
        (("report", "nothing"), "no run 'nothing'"),
        (("compare", "one", "two"), "no run 'one'"),
        (("report",), "Missing argument 'RUN…'. For example: rnnbench report latest"),
        (("new", "lstm"), "Missing option '-o' / '--output'. For example: rnnbench new my.onnx -o my.yaml"),
        (("bisect", "tiny.yaml"), "--filter time=fused,hidden=96 --good 1.20.1 --bad 1.21.0"),
        (("run", ""), "expected a path, got an empty text"),
        (("site", "latest", "-o", "tiny.yaml"), "'tiny.yaml' is a file; expected a folder, so give another path"),
        (("triage", "--alerts", "."), "'.' is a folder; expected a file, so give another path"),
        (("run", "tiny.yaml", "--results="), "expected a path, got an empty text"),
        (("run", "tiny.yaml", "--anchors="), "'--anchors': expected a text, got ''; leave the option out"),
        (("run", "tiny.yaml", "--on=ray", "--machine-class="), "'--machine-class': expected a text, got ''"),
        (("history", "backfill", "fake", "tiny.yaml", "--reference= "), "'--reference': expected a text, got ' '"),
        (
            ("run", "--resume=latest", "--filter=chunk=1"),
            "continues the run as it began; do not give --filter",
        ),
        (("run", "--resume=latest", "--no-baseline"), "do not give --no-baseline"),
        (("list", "tiny.yaml", "--backend=" + "x" * 5000), "xxx… (4,703 more characters) …xxx"),
        (
            ("ab", "tiny.yaml", "--b=x==1", "--results=tiny.yaml"),
            "'tiny.yaml' is a file; expected a folder, so give another path",
        ),
        (("bisect", "tiny.yaml", "--good=1", "--bad=2", "--results=tiny.yaml/x"), "tiny.yaml is not a folder; choose"),
        (("night", "tiny.yaml", "--results=tiny.yaml"), "'--results': "),
        (("history", "backfill", "fake", "tiny.yaml", "--results=tiny.yaml"), "'--results': "),
        (("history", "confirm", "tiny.yaml", "--results=tiny.yaml"), "'--results': "),
        (("history", "list", "--history=broken"), "broken is not a folder; name another one with --history"),
        (("new", "", "-o", "my.yaml"), "'WHAT': expected a text, got ''"),
        (("report", ""), "the name of a run is empty; give a run's folder"),
        (("compare", "a", "b", "--json="), "expected a path, got an empty text"),
        (("compare", "a", "b", "--json=x", "--markdown=./x"), "--markdown and --json name one file; name two"),
        (("ab", "tiny.yaml", "--backend=fake", "--b", "~nobody-has-this-name"), "is no virtual environment"),
        (("history", "backfill", "fake", "tiny.yaml", "--package=../x"), "expected the name of a package"),
        (("bisect", "tiny.yaml", "--good=1", "--bad=2", "--package="), "expected the name of a package"),
        (("night", "tiny.yaml", "--backend=fake", "--state=x", "--alerts=./x"), "--state and --alerts both name x"),
        (("frobnicate",), "frobnicate"),
        (("export", "latest", "--output"), "requires an argument. For example: rnnbench export latest --format=junit"),
        (("inspect", "my.onnx", "--json=x"), "does not take a value. For example: rnnbench inspect "),
        (("bisect", "tiny.yaml", "--good=1", "--bad=[red]2[/red]"), "such as 1.24.1, got '[red]2[/red]'"),
        (
            ("bisect", "tiny.yaml", "--good=" + "9" * 5000),
            "expected a version of the package, such as 1.24.1, got '999",
        ),
        (("publish", "nowhere"), "'nowhere' does not exist; correct its path"),
        (("publish", "broken"), "'broken' is a link to nowhere, which does not exist; correct the link"),
        (("inspect", "x" * 5000), "is longer than a path can be; give a shorter one"),
        (("new", "two\nlines", "-o", "my.yaml"), "'two\\nlines' is no cell"),
        (("list", "tiny.yaml", "--backend=two\nlines"), "'two\\nlines'"),
    ],
)
def test_a_mistake_has_one_sentence_and_status_2(rnnbench, folder, arguments, says):
    (folder / "broken").symlink_to("nowhere")
    assert says in rnnbench(*arguments, status=2).stderr
    assert not records_in(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        *(("report", "{}"), ("frob{}",), ("run", "{}.yaml"), ("run", "tiny.yaml", "--backend", "fake:{}")),
        *(("list", "--{}"), ("list", "tiny.yaml", "--max-trials", "{}")),
    ],
)
def test_a_mistake_shows_what_was_given_and_no_terminal_obeys_it(rnnbench, arguments):
    """Of click's mistakes and of the suite's own."""
    errors = rnnbench(*(word.format("\x1b[31mred\x07\u202e") for word in arguments), status=2).stderr
    assert "\\x1b[31mred\\x07\\u202e" in errors
    assert not {"\x1b", "\x07", "\u202e"} & set(errors)


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "pipe", "--backend", "fake"),
        ("run", "tiny.yaml", "--backend", "fake", "--expectations", "pipe"),
        ("inspect", "pipe.onnx"),
        ("history", "backfill", "numpy", "tiny.yaml", "--package", "numpy", "--list", "pipe"),
        ("history", "confirm", "tiny.yaml", "--alerts", "pipe"),
        ("triage", "--alerts", "pipe"),
        ("night", "tiny.yaml", "--backend", "fake", "--state", "pipe", "--plan"),
        ("publish", "of_pipes"),
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(rnnbench, folder, arguments):
    (folder / "of_pipes").mkdir()
    for pipe in ("pipe", "pipe.onnx", "of_pipes/night.json"):
        os.mkfifo(folder / pipe)
    said = rnnbench(*arguments, status=2).stderr
    assert "no plain file" in said or "is no summary of a night" in said


def test_a_path_that_may_not_be_read_is_told_with_what_to_do(rnnbench, folder, monkeypatch):
    monkeypatch.setattr("rnnbench.cli.option_types.os.access", lambda path, mode: "tiny" not in str(path))
    for arguments in (("inspect", "tiny.yaml"), ("new", "lstm", "-o", "tiny.yaml")):
        told = rnnbench(*arguments, status=2).stderr
        assert "'tiny.yaml' cannot be read by this user; change who may, or give another path" in told
