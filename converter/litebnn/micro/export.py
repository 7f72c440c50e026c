"""`export_c`: writes a network as a folder of C99 for microcontrollers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from litebnn import __version__
from litebnn.errors import ConversionError, boundary, shown
from litebnn.flatbuffer import read_model
from litebnn.graph import Array
from litebnn.micro.emit import Emitted, emit, in_comment, prototype
from litebnn.micro.estimate import CYCLES, instructions_of
from litebnn.micro.folder import MARK, check_folder, filled, license_text, sources_folder, write_folder
from litebnn.micro.packages import package_files
from litebnn.micro.placement import Placement, Step, place
from litebnn.micro.settings import KERNELS, PACKAGES, TARGETS
from litebnn.micro.vectors import main_parts, make_vectors, vectors_header
from litebnn.safety import check_custom_ops

# Names that a network must not have, in lower case.
_TAKEN = re.compile(
    # Headers of the C standard, and those that C libraries include.
    "assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|"
    "stdbit|stdbool|stdckdint|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype|"
    "alloca|availability.*|concurrencysal|corecrt.*|crtdefs|endian|features|ieeefp|newlib|picolibc|pthread.*|reent|sal|"
    "sched|strings|targetconditionals|vadefs|vcruntime.*|xlocale|arm_acle|arm_mve|"
    # Targets of CMake's generators, and keywords of target_link_libraries.
    "all|all_build|clean|cmake.*|codegen|depend|edit_cache|help|install|list_install_components|package|package_source|"
    "preinstall|rebuild_cache|run_tests|test|zero_check|debug|general|interface|link_.*|optimized|private|public|"
    # Files and targets of the exported build.
    "main|selftest|litebnn.*|"
    # Devices of Windows, which no file may be called.
    r"aux|com\d|con|lpt\d|nul|prn"
)


@dataclass(frozen=True)
class ExportedStep:
    """A step of an exported network: an op, or several that run row by row together."""

    # The positions of the step's ops in the model's list of ops.
    ops: tuple[int, ...]
    # The name of the tensor that the last op of the step writes.
    layer: str
    # The kinds of the ops, such as "CONV_2D".
    kinds: tuple[str, ...]
    # The names of the C functions that compute the step's ops.
    functions: tuple[str, ...]
    # The size in bytes of the step's constants.
    flash: int
    # The number of bytes of the arena (the network's static memory) that are in use while the step runs.
    ram: int
    # The estimated instructions; None if one of the functions was not measured.
    instructions: int | None = None
    # The estimated cycles, without wait states of the flash.
    cycles: int | None = None


@dataclass(frozen=True)
class Export:
    """The result of `export_c`.

    Attributes:
        folder: the exported folder.
        name: the name of the network in C.
        kernels: the group of kernels: "compact" or "fast".
        target: the microcontroller for which kernels were selected.
        steps: the steps of the network, in the order in which they run.
        arena_bytes: the size of the static memory in bytes.
        constant_bytes: the size of the constants in flash in bytes, without code.
        input_bytes, output_bytes: the size in bytes of the memory that the caller provides.
        exact: true if all results equal those of TFLite's reference kernels to the last bit.
        files: the paths of the written files in the folder, with slashes; nothing for an estimate.
    """

    folder: str
    name: str
    kernels: str
    target: str
    steps: tuple[ExportedStep, ...]
    arena_bytes: int
    constant_bytes: int
    input_bytes: int
    output_bytes: int
    exact: bool
    files: tuple[str, ...] = ()

    @property
    def instructions(self) -> int:
        """The estimated instructions of one run, without functions whose costs were not measured."""
        return sum(step.instructions or 0 for step in self.steps)

    @property
    def cycles(self) -> int:
        """The estimated cycles of one run, without functions whose costs were not measured."""
        return sum(step.cycles or 0 for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The export as plain numbers, strings and lists, for JSON."""
        return asdict(self)


def export_c(
    model: bytes | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    name: str = "model",
    kernels: str = "compact",
    target: str = "cortex-m4",
    packages: Sequence[str] = (),
    samples: Array | Sequence[Array] | Mapping[str, Array] | None = None,
    title: str = "",
) -> Export:
    """Writes a `.tflite` model as a folder of C99 that compiles for any microcontroller.

    A model that is not converted yet is converted first. The folder gets the network and the kernels that it calls in
    `src/`, a self-test with test vectors, a CMakeLists.txt and a Makefile.

    Args:
        model: the model's bytes, or the path of its file.
        folder: the folder to write. It is new, empty, or an earlier export, whose files are replaced; other files in it
            stay.
        name: the network's name in C: the function is `NAME_run` in `NAME.h`.
        kernels: "compact" for the least flash, "fast" for the fewest instructions.
        target: the microcontroller for which kernels are selected: cortex-m4, cortex-m7, cortex-m55 or rv32imc.
        packages: wrappers to add: arduino, platformio, zephyr, esp-idf.
        samples: inputs of the self-test, an array [samples, ...] for each of the model's inputs, or a dictionary of
            them by the tensors' names; by default random.
        title: the model's name in comments; by default the file's name.

    Raises:
        ConversionError: the model cannot be read, converted or exported; the message names op and layer.
        TypeError: `packages` is no list.
        ValueError: an option has a value that it cannot have, or the folder is neither empty nor an earlier export. Or
            a file of the user's would be replaced.
        OSError: the folder cannot be written.

    Example:
        >>> litebnn.export_c("binary.tflite", "network", target="cortex-m7")  # doctest: +SKIP
    """
    packages = _check(name, kernels, target, packages)
    where = Path(folder)
    check_folder(where)
    content, title = _converted(model, title)
    placement, emitted = _planned(content, name, kernels, target, title)
    is_exact = _is_exact(placement)
    vectors = make_vectors(content, read_model(content).graphs[0], is_exact, samples)
    export = _export(where, name, kernels, target, placement, emitted, is_exact)
    values = {
        "NAME": name,
        "UPPER": name.upper(),
        "TITLE": title,
        "VERSION": __version__,
        "TARGET": target,
        "KERNELS": kernels,
        "ARENA": export.arena_bytes,
        "CONSTANTS": export.constant_bytes,
        "PROTOTYPE": prototype(placement, name),
        "TABLE": _markdown_table(export),
        **main_parts(vectors, placement, name),
    }
    code = {f"src/{file}": text for file, text in _sources(emitted).items()}
    listed = [file for file in (f"src/{name}.c", *code) if file.endswith(".c")]
    values["CMAKE_SOURCES"] = "".join(f"  {file}\n" for file in listed)
    values["ZEPHYR_SOURCES"] = "".join(f"    ../{file}\n" for file in listed)
    values["MAKE_SOURCES"] = " \\\n  ".join(listed)
    files = {
        f"src/{name}.h": emitted.header,
        f"src/{name}.c": emitted.source,
        **code,
        f"{name}_vectors.h": vectors_header(vectors, placement, name),
        "main.c": filled("main.c.in", values),
        **package_files(packages, values),
        "LICENSE": license_text(),
    }
    export = replace(export, files=(*files, MARK))
    write_folder(where, {**files, MARK: json.dumps(export.to_dict(), indent=1) + "\n"})
    return export


def estimate_c(model: bytes | str | os.PathLike[str], *, kernels: str = "compact", target: str = "cortex-m4") -> Export:
    """Plans what `export_c` would write, and estimates flash, RAM, instructions and cycles. Nothing is written.

    Raises:
        ConversionError: the model cannot be read, converted or exported; the message names op and layer.
        ValueError: an option has a value that it cannot have.
    """
    _check("model", kernels, target, ())
    content, title = _converted(model, "")
    placement, emitted = _planned(content, "model", kernels, target, title)
    return _export(Path(), "model", kernels, target, placement, emitted, _is_exact(placement))


def _planned(content: bytes, name: str, kernels: str, target: str, title: str) -> tuple[Placement, Emitted]:
    with boundary():
        model = read_model(content)
        if not model.graphs:
            raise ConversionError("the model has no subgraph")
        check_custom_ops(model.graphs[0])
        placement = place(model, kernels, target)
        return placement, emit(placement, name, title, __version__)


def _is_exact(placement: Placement) -> bool:
    return all(lowered.exact for step in placement.steps for _, lowered in step.ops)


def _check(name: str, kernels: str, target: str, packages: Iterable[str]) -> list[str]:
    """Refuses options that cannot be; returns the packages."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name):
        raise ValueError(f"name is {shown(name)!r}, expected a name for C of up to 41 letters, digits and _")
    # Names are compared in lower case, because some systems do not distinguish upper and lower case in file names.
    if _TAKEN.fullmatch(name.lower()) or any(sources_folder().rglob(f"{name.lower()}.[ch]")):
        raise ValueError(f"name is {name!r}, as a file or a target of the build is called: expected another name")
    for option, value, known in (("kernels", kernels, KERNELS), ("target", target, TARGETS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{option} is {shown(value)!r}, expected one of {', '.join(known)}")
    if isinstance(packages, str) or not isinstance(packages, Iterable):
        raise TypeError(f"packages is {shown(packages)!r}, expected a list of names")
    packages = list(packages)
    for package in packages:
        if not isinstance(package, str) or package not in PACKAGES:
            raise ValueError(f"packages has {shown(package)!r}, expected {', '.join(PACKAGES)}")
    if "arduino" in packages and name.lower().startswith("arduino"):
        raise ValueError(f"name is {name!r}: Arduino's own libraries alone may have names that start with Arduino")
    return packages


def _converted(model: bytes | str | os.PathLike[str], title: str) -> tuple[bytes, str]:
    """The bytes of a converted model, and its name."""
    import warnings

    from litebnn.convert import convert_tflite

    with warnings.catch_warnings():
        # The converter's warning of a model without binary layers is ignored, because such a network can be exported,
        # too.
        warnings.filterwarnings("ignore", message="no binary layer")
        content: bytes = convert_tflite(model)
    is_path = isinstance(model, str | os.PathLike)
    return content, in_comment(title or (Path(model).name if is_path else "A network"))  # type: ignore[arg-type]


def _sources(emitted: Emitted) -> dict[str, str]:
    """The texts of the C files with the functions that the network calls, and of all files that these files include.
    The keys are file names.
    """
    folder = sources_folder()
    defining = _definitions(folder)
    files: dict[str, str] = {}
    wanted = [*(folder / file for file in emitted.sources), *_called(emitted.source, defining)]
    while wanted:
        path = wanted.pop(0)
        if path.name in files:
            continue
        files[path.name] = text = path.read_text(encoding="utf-8")
        for header in re.findall(r'#include "([\w.]+)"', text):
            wanted.append(next(place / header for place in path.parents if (place / header).is_file()))
        if path.suffix == ".c":
            wanted += _called(text, defining)
    return dict(sorted(files.items()))


def _definitions(folder: Path) -> dict[str, Path]:
    """For each function and structure of the binary kernels, the C file that defines it."""
    pattern = re.compile(r"^(?!static|typedef|extern)\w[\w ]*?[ *](litebnn_\w+)(?=\(| =|\[)", re.MULTILINE)
    files = sorted(folder.glob("*.c"))
    return {name: path for path in files for name in pattern.findall(path.read_text(encoding="utf-8"))}


def _called(text: str, defining: Mapping[str, Path]) -> list[Path]:
    return [defining[name] for name in dict.fromkeys(re.findall(r"\blitebnn_\w+", text)) if name in defining]


def _export(
    folder: Path, name: str, kernels: str, target: str, placement: Placement, emitted: Emitted, is_exact: bool
) -> Export:
    steps = tuple(
        ExportedStep(
            tuple(placement.numbers[op] for op, _ in step.ops),
            step.ops[-1][0].output.name,
            tuple(op.name for op, _ in step.ops),
            tuple(dict.fromkeys(call.function for call in step.calls)),
            flash,
            ram,
            *_estimates(step, target),
        )
        for step, flash, ram in zip(placement.steps, emitted.constant_bytes, placement.step_bytes, strict=True)
    )
    sizes = [
        sum((1 if t.type in ("INT8", "BOOL") else 4) * _count(t.shape) for t in tensors)
        for tensors in (placement.graph.inputs, placement.graph.outputs)
    ]
    return Export(
        *(str(folder), name, kernels, target, steps, placement.arena_bytes),
        *(sum(emitted.constant_bytes), sizes[0], sizes[1], is_exact),
    )


def _estimates(step: Step, target: str) -> tuple[int | None, int | None]:
    instructions = instructions_of(step, target)
    return instructions, None if instructions is None else round(instructions * CYCLES[target])


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _markdown_table(export: Export) -> str:
    estimates = (
        ("?" if count is None else str(count) for count in (step.instructions, step.cycles)) for step in export.steps
    )
    rows = [
        f"| {' + '.join(step.kinds)} | {step.flash} | {step.ram} | {' | '.join(counts)} |\n"
        for step, counts in zip(export.steps, estimates, strict=True)
    ]
    head = "| step | constants, bytes | arena in use, bytes | estimated instructions | estimated cycles |\n"
    return head + "|---|---|---|---|---|\n" + "".join(rows)
