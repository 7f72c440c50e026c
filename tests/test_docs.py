"""Compares lists, versions, tasks and files in the documents with the code that defines them."""

import ast
import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest
from invoke.collection import Collection
from packaging.requirements import Requirement

import litebnn
import tasks
from bench.rules.page import ISAS, PAGE, rewritten
from bench.rules.pairs import pairs
from litebnn import cli, contract
from litebnn.frontends.files import file_to_tflite
from litebnn.report import guidelines
from tests.runtimes.environments import ENVIRONMENTS
from tests.support.documents import (
    DOCUMENTS,
    anchors,
    code,
    commands,
    exists,
    links,
    modules,
    named_paths,
    read,
    sources,
    table,
)
from toolchains.emulate import SUITE
from toolchains.fetch.lock import find
from toolchains.formats.exports import EXPORTS
from toolchains.release.checks import CHECKS
from toolchains.runtime_library import LITERT_VERSION
from toolchains.targets import ROOT, TOOLCHAINS, load_targets, read_toml

PROJECT = read_toml(ROOT / "pyproject.toml")
HOOK = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]
SOURCES = sorted(sources())
REQUIREMENT = re.compile(r"\b([a-z][\w-]+)>=([\d.]*\d)")
KINDS = ("litebnn", "lce-best", "lce-default", "xnnpack")
TASKS = Collection.from_module(tasks)


def of(path: Path) -> str:
    """The path of a file in the project."""
    return str(path.relative_to(ROOT))


def test_paths_that_are_named_exist() -> None:
    named = {of(path): [name for name in named_paths(read(path)) if not exists(name)] for path in SOURCES}
    assert {path: missing for path, missing in named.items() if missing} == {}


def test_tasks_and_flags_that_are_named_exist() -> None:
    for path in SOURCES:
        for name, flags in commands(read(path), path in DOCUMENTS):
            assert name in TASKS.task_names, f"{of(path)}: there is no task {name}"
            known = {f"--{word.replace('_', '-')}" for each in TASKS[name].get_arguments() for word in each.names}
            assert set(flags) <= known, f"{of(path)}: the task {name} has no such flag"


def test_modules_that_are_named_exist() -> None:
    named = {module: of(path) for path in SOURCES for module in modules(read(path)) if not module.isupper()}
    assert {path for module, path in named.items() if importlib.util.find_spec(module) is None} == set()


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for file, heading in links(read(path)):
            target = path.parent / file if file else path
            assert target.exists(), f"{of(path)}: {file}"
            assert not heading or heading in anchors(read(target)), f"{of(path)}: {file}#{heading}"


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {file for file, _ in links(read("README.md"))}
    assert {of(path) for path in DOCUMENTS} - {"README.md"} <= linked


@pytest.mark.parametrize("document", ["README.md", "docs/cross-compile.md"])
def test_targets(document: str) -> None:
    rows = [[code(name)[0], description] for name, description, *_ in table(document, "target")]
    assert rows == [[target.name, target.description] for target in load_targets().values()]


BUILDERS = {"GCC": "gcc", "zig": "zig", "Clang": "clang", "NDK": "ndk"}


def test_every_target_says_how_it_was_tried() -> None:
    rows = {code(name)[0]: rest for name, *rest in table("docs/platforms.md", "target")}
    debs = {name: deb.partition(",")[0] for name, (_, _, deb, _, _) in rows.items()}
    assert debs == {name: load_targets()[name].debian or "none" for name in rows}
    rows = {name: (builders, wheel, tried) for name, (builders, wheel, _, _, tried) in rows.items()}
    assert [*rows] == [name for name, target in load_targets().items() if target.triple]
    for name, (builders, wheel, tried) in rows.items():
        target = load_targets()[name]
        assert (wheel.startswith("none") or wheel == "") != bool(target.wheel), name
        assert re.match(r"silicon: |emulator(?: \(Wine\))?: |structure: ", tried), name
        assert tried.startswith("emulator: ") <= bool(target.emulator), name
        assert ("(Wine)" in tried) == (target.system == "Windows"), name
        # The toolchain `docker` has the same compiler as `zig`.
        assert {BUILDERS[word] for word in BUILDERS if word in builders} == {*target.toolchains} - {"docker"}, name


def test_the_exported_names() -> None:
    assert sorted(name for names, _ in table("docs/library.md", "name") for name in code(names)) == EXPORTS


def test_cpus_of_the_targets() -> None:
    for name, _, cpu in table("docs/cross-compile.md", "target"):
        if cpu.startswith("Cortex-"):
            assert load_targets()[code(name)[0]].zig_cpu == cpu.lower().replace("-", "_")


def test_glibc_floors_and_wheel_tags() -> None:
    targets = load_targets().values()
    text = read("docs/cross-compile.md")
    assert re.findall(r"promised for `zig` and `docker` is glibc\s+([\d.]+\d)", text) == [
        floor for floor in {target.glibc for target in targets} if floor
    ]
    tags = {tag.removesuffix("-") for tag in re.findall(r"manylinux_\w+", read("docs/wheels.md"))}
    assert tags == {target.wheel for target in targets if "manylinux" in target.wheel}


def test_toolchains() -> None:
    assert [code(name)[0] for name, *_ in table("docs/cross-compile.md", "`--toolchain=`")] == [*TOOLCHAINS, "auto"]
    assert f"auto, {', '.join(TOOLCHAINS[:-1])} or {TOOLCHAINS[-1]}" == tasks.TOOLCHAIN


def test_values_of_the_options() -> None:
    text = read("docs/ops.md")
    for name, kind in (("padding", contract.Padding), ("fused_activation_function", contract.Activation)):
        values = re.search(rf"`{name}`: ([^.(]*)", text)
        assert values is not None
        assert re.findall(r"(\d+) (\w+)", values[1]) == [(str(value.value), value.name) for value in kind]


def test_number_of_golden_models() -> None:
    (number,) = re.findall(r"holds (\d+) small models", read("docs/ops.md"))
    assert int(number) == len(list((ROOT / "tests" / "golden").glob("*.lce.tflite")))


def test_options_of_the_converter() -> None:
    parameters = inspect.signature(litebnn.convert_tflite).parameters.values()
    known = {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    rows = table("docs/converter.md", "option")
    assert [name for names, *_ in rows for name in code(names)] == list(known)
    for names, default, _ in rows:
        for name in code(names):
            written = code(default)[0] if default else ""
            # In the table of docs/converter.md, defaults are literals or words. A default that a function computes is
            # not documented.
            if written and not callable(known[name]):
                assert written in (known[name], repr(known[name])) or ast.literal_eval(written) == known[name], name


def test_formats_that_convert_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (documented,) = re.findall(r"^IN is (.+?folder),", read("docs/converter.md"), re.MULTILINE)
    with pytest.raises(SystemExit):
        cli.main(["convert", "--help"])
    (helped,) = re.findall(r"^ +IN +(.+?folder)", capsys.readouterr().out, re.MULTILINE | re.DOTALL)
    unknown = tmp_path / "model"
    unknown.write_bytes(b"of no known format")
    with pytest.raises(litebnn.ConversionError) as told:
        file_to_tflite(unknown)
    formats = {tuple(re.findall(r"\.\w+|SavedModel", text)) for text in (documented, helped, str(told.value))}
    assert len(formats) == 1
    assert len(formats.pop()) > 3


def test_options_of_the_delegate() -> None:
    documented = [code(name)[0] for name, *_ in table("docs/library.md", "option")]
    known = re.search(r"kOptions\[\] = \{(.*?)\};", read("ops/tflite/entry/plugin.cc"), re.DOTALL)
    assert known is not None
    assert re.findall(r'\{"(\w+)"', known[1]) == documented
    assert set(inspect.signature(litebnn.load_delegate).parameters) >= set(documented)


def isas() -> list[str]:
    """The names of all instruction sets that isa.h declares: kNeon64InOrderIsa is neon64_in_order."""
    declared = re.findall(r"^extern const Isa k(\w+)Isa;$", read("ops/kernels/isa/isa.h"), re.MULTILINE)
    return sorted(re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower() for name in declared)


def test_instruction_sets() -> None:
    names = isas()
    assert len(names) > 4
    (row,) = (row for row in table("docs/library.md", "option") if code(row[0]) == ["isa"])
    assert sorted(code(row[1])) == names
    rows = [(code(name)[0], code(folder)[0]) for name, _, folder in table("docs/isas.md", "ISA")]
    assert sorted(name for name, _ in rows) == names
    assert [folder for _, folder in rows if not (ROOT / "ops" / "kernels" / "isa" / folder).is_dir()] == []


@pytest.mark.parametrize("program", ["label_image", "benchmark_model", "run_model"])
def test_flags_of_the_programs(program: str) -> None:
    section = read("docs/programs.md").split(f"\n## {program}\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `--(\w+)`(?:, `-(\w)`)? \|", section, re.MULTILINE)
    known = re.findall(r"^ +\{\"(\w+)\", (?:0|'(\w)'), ", read(f"examples/{program}/{program}.cc"), re.MULTILINE)
    assert sorted(documented) == sorted(known)


def test_runtimes() -> None:
    documented = "\n".join(name for name, *_ in table("docs/library.md", "runtime"))
    known = [version for each in ENVIRONMENTS for version in re.findall(r"-(\d+\.\d+)$", each.name)]
    assert sorted(re.findall(r"\d+\.\d+", documented)) == sorted(known)


def test_python_versions() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    listed = [text.rpartition(" ")[2] for text in PROJECT["project"]["classifiers"] if "Python :: 3." in text]
    assert listed[0] == oldest
    for path in SOURCES:
        said = re.findall(r"Python (3\.\d+) (?:or newer|on\b)|Python from (3\.\d+) on", read(path))
        assert {version for pair in said for version in pair if version} <= {oldest}, path


def test_requirements_are_those_of_the_project() -> None:
    project = PROJECT["project"]
    requirements = [
        *HOOK["dependencies"],
        *(text for runtimes in HOOK["runtimes"].values() for text in runtimes),
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    names = {Requirement(text).name for text in requirements}
    known = {found for text in requirements for found in REQUIREMENT.findall(text)}
    for path in SOURCES:
        said = {found for found in REQUIREMENT.findall(read(path)) if found[0] in names}
        assert said <= known, of(path)


def test_the_extras_compiler_is_the_locked_one() -> None:
    assert PROJECT["project"]["optional-dependencies"]["cross"] == [find("ziglang").requirement]


def test_one_debian() -> None:
    for path in ("docker/Dockerfile", "docker/base_image.sh", "docs/cross-compile.md"):
        assert set(re.findall(r"\b(\w+)-slim", read(path))) == {SUITE}, path


def test_the_runtime_of_the_programs() -> None:
    assert set(re.findall(r"LiteRT (\d+\.\d+\.\d+)", read("docs/board.md"))) == {LITERT_VERSION}


def test_the_peer_is_the_one_that_is_installed() -> None:
    pinned = re.search(r"larq-compute-engine==([\d.]+)\.\*", read("bench/zoo/make_models.py"))
    assert pinned is not None
    for path in SOURCES:
        said = re.findall(r"(?<!before )(?:Larq Compute Engine|larq-compute-engine) (\d+\.\d+)\b", read(path))
        assert set(said) <= {pinned[1]}, path


def test_rules_and_their_prices() -> None:
    prices = guidelines.read_prices(guidelines.FILE.read_text(encoding="utf-8"))
    assert rewritten(PAGE.read_text(encoding="utf-8"), prices) == PAGE.read_text(encoding="utf-8")
    assert [pair.rule for pair in pairs()] == [rule.name for rule in guidelines.GUIDELINES]
    assert {*ISAS, "sme2"} == set(isas())


def test_every_network_of_another_trainer_is_in_the_table_of_idioms() -> None:
    networks = {path.stem for path in (ROOT / "tests" / "golden_trainers").glob("*.tflite")}
    assert networks - set(re.findall(r"`(\w+)`", (ROOT / "docs" / "idioms.md").read_text())) == set()


def test_what_there_is_to_train_with_in_pytorch() -> None:
    tree = ast.parse(read("converter/litebnn/torch/__init__.py"))
    (known,) = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    named = {name for names, *_ in table("docs/torch.md", "name") for name in code(names)}
    assert named == {*ast.literal_eval(known)}


def test_times_of_the_zoo_are_those_that_were_measured() -> None:
    times = json.loads(read("bench/zoo/times.json"))["models"]
    rows = {name: cells for name, *cells in table("docs/performance.md", "network")}
    assert rows.keys() == times.keys()
    for name, cells in rows.items():
        medians = [times[name][kind]["median_ms"] if kind in times[name] else None for kind in KINDS]
        ours, best, _, other = medians
        expected = [*medians, best and best / ours, other / ours]
        assert [None if cell == "–" else float(cell) for cell in cells] == [
            number and pytest.approx(number, abs=0.051) for number in expected
        ]


def test_checks_of_a_release() -> None:
    rows = [(code(name)[0], kinds) for name, kinds, _ in table("docs/release.md", "check")]
    assert rows == [(check.name, ", ".join(check.kinds) or "project") for check in CHECKS]


def test_commands_are_those_of_the_command_line() -> None:
    """The table of commands has the order of `litebnn --help`."""
    [commands] = (action for action in cli.command_line_parser()._actions if action.dest == "command")
    rows = [code(name)[0] for name, _ in table("docs/command-line.md", "command")]
    assert rows == [f"litebnn {name}" for name in commands.choices]
