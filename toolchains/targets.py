"""Reads the table of targets, targets.toml, as typed rows."""

import re
import sys
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
TABLE = ROOT / "toolchains" / "targets.toml"
PACKAGE = ROOT / "converter" / "litebnn" / "__init__.py"

# The toolchains that the option --toolchain can name, besides "auto".
TOOLCHAINS = ("gcc", "clang", "zig", "docker", "ndk")


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', PACKAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{PACKAGE} has no __version__"
    return found[1]


# The version of the package litebnn, which is not imported: the toolkit also runs where it is not installed.
VERSION = _version()


class ToolkitError(Exception):
    """A problem that the user can fix. The message has one line."""


@dataclass(frozen=True)
class System:
    """File names on an operating system: the op library, LiteRT's C library, and the ending of programs."""

    library: str
    litert: str
    program_suffix: str = ""


# By CMake's names of the operating systems.
SYSTEMS = {
    "Linux": System("liblitebnn.so", "libLiteRt.so"),
    "Android": System("liblitebnn.so", "libLiteRt.so"),
    "Darwin": System("liblitebnn.dylib", "libLiteRt.dylib"),
    "Windows": System("litebnn.dll", "libLiteRt.dll", ".exe"),
}
HERE = SYSTEMS[{"win32": "Windows", "darwin": "Darwin"}.get(sys.platform, "Linux")]


@dataclass(frozen=True)
class Target:
    """A row of targets.toml. The comments in that file explain the fields."""

    name: str
    description: str
    family: str
    triple: str
    system: str = "Linux"
    processor: str = ""
    toolchains: tuple[str, ...] = ("zig", "gcc", "docker")
    gcc_flags: tuple[str, ...] = ()
    gcc_package: str = "g++"
    zig_cpu: str = "baseline"
    zig_target: str = ""
    glibc: str = ""
    emulator: str = ""
    emulator_package: str = "qemu-user"
    emulator_cpu: str = ""
    machine: str = ""
    debian: str = ""
    ndk_abi: str = ""
    ndk_platform: int = 0
    wheel: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the target's products."""
        return BUILD / self.name

    @property
    def is_bare_metal(self) -> bool:
        """True for a microcontroller, which has no operating system."""
        return bool(self.machine)

    @property
    def names(self) -> System:
        """The file names of libraries and programs on the target's system."""
        return SYSTEMS[self.system] if self.triple else HERE

    @property
    def zig_name(self) -> str:
        """zig's name of the target, with the oldest system version that it runs on; "" for this machine."""
        return self.zig_target or (f"{self.triple}.{self.glibc}" if self.triple else "")


# For each Python type of a field, the type that its TOML value must have, and the name of this type in error messages.
KINDS: dict[Any, tuple[type, str]]
KINDS = {str: (str, "a string"), int: (int, "an integer"), tuple[str, ...]: (list, "a list of strings")}
KEYS = {field.name: KINDS[field.type] for field in fields(Target) if field.name != "name"}
REQUIRED = [field.name for field in fields(Target) if field.default is MISSING]


def load_targets() -> dict[str, Target]:
    """All targets by name, in the order of the file.

    Raises:
        ToolkitError: the file is no valid TOML, or a key of a row is wrong.
    """
    try:
        rows = read_toml(TABLE)
    except tomllib.TOMLDecodeError as error:
        raise ToolkitError(f"{TABLE.name}: {error}") from error
    for name, row in rows.items():
        _check(name, row)
    return {name: _target(name, row, rows) for name, row in rows.items()}


def _wrong(row: str, key: str, expected: str, found: object) -> ToolkitError:
    return ToolkitError(f"{TABLE.name}, row {row}, key {key}: expected {expected}, found {found!r}")


def _check(name: str, row: Any) -> None:
    """Raises ToolkitError if a row has an unknown key or a value of the wrong type."""
    if not isinstance(row, dict):
        raise ToolkitError(f"{TABLE.name}, {name}: expected a row, as [{name}], found {row!r}")
    for key, value in row.items():
        if key not in KEYS:
            raise ToolkitError(f"{TABLE.name}, row {name}: unknown key '{key}'; the keys are {', '.join(KEYS)}")
        kind, called = KEYS[key]
        if type(value) is not kind or (isinstance(value, list) and {*map(type, value)} - {str}):
            raise _wrong(name, key, called, value)
    if row.get("system", "Linux") not in SYSTEMS:
        raise _wrong(name, "system", f"one of {', '.join(SYSTEMS)}", row["system"])
    if unknown := set(row.get("toolchains", ())) - set(TOOLCHAINS):
        raise _wrong(name, "toolchains", f"some of {', '.join(TOOLCHAINS)}", unknown.pop())


def _target(name: str, row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> Target:
    """Makes a target from its row, and takes missing values from the row of its family."""
    family = row.get("family", name)
    heads = [head for head in rows if rows[head].get("family", head) == head]
    if family not in heads:
        raise _wrong(name, "family", f"one of {', '.join(heads)}", family)
    whole = {**rows[family], "description": None, **row, "name": name, "family": family}
    for key in REQUIRED:
        if whole.get(key) is None:
            raise ToolkitError(f"{TABLE.name}, row {name}: the key {key} is missing")
    frozen: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in whole.items()}
    return Target(**frozen)


def find_target(name: str) -> Target:
    """The target called `name`.

    Raises:
        ToolkitError: no target has this name, or the table is wrong.
    """
    targets = load_targets()
    if name not in targets:
        raise ToolkitError(f"no target is called '{name}'; the targets are {', '.join(targets)}")
    return targets[name]


def find_system_target(name: str) -> Target:
    """The target called `name`, which must have an operating system.

    Raises:
        ToolkitError: as for `find_target`, or the target is a microcontroller.
    """
    target = find_target(name)
    if target.is_bare_metal:
        raise ToolkitError(f"{name} is a microcontroller, for which only `invoke build --target={name}` is there")
    return target
