import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from litebnn import cli
from litebnn.cli.output import print_json, print_table
from litebnn.cli.parsing import OneLineParser
from litebnn.cli.progress import progress
from litebnn.options import OPTIONS
from tests.evaluate.data_sets import MODEL, class_folders
from tests.support.commands import refused
from toolchains.targets import ROOT

COMMANDS = sorted(cli.command_line_parser()._subparsers._group_actions[0].choices)
FLOAT_MODEL = ROOT / "tests" / "golden" / "1x1.float.tflite"
# Modules that `--help` must not import. Each would take at least a quarter of the time that `--help` may take.
HEAVY = {"numpy", "rich", "flatbuffers", "shtab", "zipfile", "importlib.metadata", "asyncio", "ssl"}


def test_help_imports_little() -> None:
    code = "import sys; from litebnn import cli\ntry: cli.main(['--help'])\nfinally: print(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "convert a model's binary layers" in result.stdout
    assert "litebnn.cli.convert" in result.stdout.splitlines()
    assert HEAVY.isdisjoint(result.stdout.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_help_with_examples_that_are_right(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    _, _, examples = capsys.readouterr().out.partition("examples:\n")
    lines = examples.splitlines()
    assert lines
    for line in lines:
        program, name, *arguments = shlex.split(line.partition(" > ")[0])
        assert (program, name) == ("litebnn", command)
        assert cli.command_line_parser().parse_args([name, *arguments]).command == command


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]
)
def test_shells_complete_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.needs("bash")
def test_bash_completes_files_where_a_command_takes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "model.tflite").touch()
    ask = "COMP_WORDS=(litebnn check mod); COMP_CWORD=2; _shtab_litebnn litebnn mod check; echo ${COMPREPLY[*]}"
    script = f"{capsys.readouterr().out}\n{ask}"
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "model.tflite\n"


@pytest.mark.needs("fish")
def test_fish_completes_files_where_a_command_takes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "fish"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "model.tflite").touch()
    ask = ["fish", "--no-config", "--command", "source script; complete --do-complete 'litebnn check mod'"]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "model.tflite\n"


def test_what_a_command_answers_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(code: int | type[BaseException] | None):
        def run(options) -> int | None:
            if isinstance(code, type):
                raise code
            return code

        class Command:
            @staticmethod
            def add_to(commands) -> None:
                commands.add_parser("ask").set_defaults(run=run)

        monkeypatch.setattr(cli, "_COMMANDS", (Command,))
        return cli.main(["ask"])

    assert [answers(code) for code in (None, 0, 2, ValueError, KeyboardInterrupt)] == [0, 0, 2, 1, 130]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["inspect", "--help"]])
def test_help_that_cannot_be_written_is_said(words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        command = [sys.executable, "-m", "litebnn", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 1
    assert re.fullmatch("litebnn: .*No space left on device\n", done.stderr)


def test_a_pipe_is_no_model_to_wait_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe.tflite"
    os.mkfifo(pipe)
    for command in ("inspect", "summary", "check"):
        assert refused(capsys, command, pipe) == f"litebnn: {pipe} is no regular file"


@pytest.mark.parametrize(
    "words",
    [
        *(f"{command} bad.tflite" for command in ("check", "inspect", "summary", "benchmark")),
        *(f"convert bad.{kind} -o out.tflite" for kind in ("tflite", "keras")),
        "convert good.tflite -o out.tflite --representative-data bad.npz",
        "convert float.tflite -o out.tflite --verify-data bad.npz",
        "convert float.tflite -o out.tflite --verify-data bad --workers 0",
        "compare bad.tflite good.tflite",
        "compare good.tflite bad.tflite",
        "compare good.tflite good.tflite --input bad.npy",
        "benchmark good.tflite --peer --float bad.tflite",
        "evaluate bad.tflite --data bad.npz",
        "evaluate good.tflite --data bad.npz",
        "evaluate good.tflite --data images --partial bad.npz",
        "evaluate good.tflite --data bad --workers 0 --partial partial",
        "evaluate good.tflite --data bad --workers 1 --partial partial",
    ],
)
def test_a_file_whose_disk_fails_is_named(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(MODEL, "good.tflite")
    shutil.copy(FLOAT_MODEL, "float.tflite")
    class_folders(Path("images"), 1)
    Path("bad/0").mkdir(parents=True)
    # Address 0 of a process is not mapped, so reading the start of /proc/self/mem fails.
    for bad in ("bad.tflite", "bad.keras", "bad.npz", "bad.npy", "bad/0/1.png"):
        Path(bad).symlink_to("/proc/self/mem")
    assert cli.main(words.split()) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    named = next(word for word in words.split() if word.startswith("bad"))
    assert re.fullmatch(f"litebnn: .*{re.escape(named)}.*: Input/output error", line)


def test_json_holds_no_number_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": (1.5, float("nan")), "b": {"c": float("inf")}})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None], "b": {"c": None}}


def test_tables_show_what_a_terminal_would_act_on(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["layer", "MACs"], [["[red]conv\x1b[31m", "7"]], numbers=["MACs"])
    assert capsys.readouterr().out.splitlines() == ["layer              MACs", "[red]conv\\x1b[31m     7"]


def test_progress_is_silent_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as show:
        show("writing")
    assert capfd.readouterr() == ("", "")


def test_an_interruption_while_the_command_is_still_imported_is_one_line() -> None:
    code = """
import sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == "litebnn.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from litebnn.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "litebnn: interrupted\n")


def values_taken() -> list[tuple[str, str]]:
    """Lists each command with each of its options and arguments that take a value."""
    commands = cli.command_line_parser()._subparsers._group_actions[0].choices
    return [
        (name, action.option_strings[-1] if action.option_strings else "")
        for name, parser in commands.items()
        for action in parser._actions
        if action.nargs != 0
    ]


@pytest.mark.parametrize(("command", "option"), values_taken())
def test_an_empty_value_is_a_mistake(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Options that take a path or a name refuse an empty value. An empty path would mean the current folder, and an
    empty name a default."""
    line = refused(capsys, command, *([option] * bool(option)), "", "")
    assert re.match(f"litebnn {command}: argument .*{option}", line)


def commands() -> dict[str, OneLineParser]:
    return cli.command_line_parser()._subparsers._group_actions[0].choices


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        *(
            (f"convert a -o b --{option}", "is for a data set")
            for option in ("preprocess=x", "workers=1", "scheduler=a:1")
        ),
        *(
            (f"convert a -o b --verify-data=a.npy --{option}", "is for a data set")
            for option in ("preprocess=x", "workers=1")
        ),
        ("convert a -o b --representative-dataset=a.npy --scheduler=nowhere:1", "is for a data set"),
        ("convert a -o b --stem=int8", "--input-range"),
        ("convert a -o b --input-range=0,1", "--stem"),
        ("convert a -o b --dynamic-range", "--low-bit-weights"),
        ("inspect a --board=rpi4", "--model-explorer"),
        ("summary a --input-shape=1,2", "expected MODULE:FUNCTION"),
        *((f"benchmark a --{option}=x", "--host") for option in ("target", "folder", "identity", "accept-host-key")),
        *((f"benchmark a --peer --host=pi --{option}=x", "for this machine") for option in ("isa", "peer-python")),
        *((f"benchmark a --{option}=x", "--peer") for option in ("float", "peer-python")),
        *((f"compare a b --input=c.npy --{option}=1", "leave --input out") for option in ("seed", "samples")),
        ("compare a b --input=c.npy --seed=0", "leave --input out"),
        *(
            (f"evaluate a --data=b --{option}=x", "--boards")
            for option in ("board-folder", "identity", "accept-host-key")
        ),
        ("evaluate a --data=module:function --batch-size=32", "for a function"),
    ],
)
def test_an_option_without_effect_is_refused(words: str, needs: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, *words.split())
    option = words.split()[-1].partition("=")[0]
    assert re.match(f"litebnn: {option} .*{needs}", line)


def test_options_that_need_others_are_known_and_have_no_default() -> None:
    found = 0
    for parser in commands().values():
        for option, _, _ in parser.conditions:
            [action] = [action for action in parser._actions if option in action.option_strings]
            assert action.default in (None, False, [])
            assert action.dest == option.lstrip("-").replace("-", "_")
            found += 1
    assert found > 15


def test_an_option_of_convert_has_the_name_that_it_has_in_python() -> None:
    """Some options of `litebnn.convert_tflite` are not on the command line: those for its return value and its
    callbacks, and `target`, which has a single value."""
    strings = {string for action in commands()["convert"]._actions for string in action.option_strings}
    of_functions = {"target", "return_report", "progress"}
    assert {f"--{name.replace('_', '-')}" for name in OPTIONS if name not in of_functions} <= strings
    assert {"--representative-data", "--default-int8-range"} <= strings
