"""The table of targets, targets.toml, as typed rows."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


class ToolkitError(Exception):
    """What the user has to mend, in one line."""


@dataclass(frozen=True)
class Target:
    """A row of targets.toml; the meaning of each field is said there."""

    name: str
    description: str
    triple: str
    processor: str = ""
    gcc_flags: tuple[str, ...] = ()
    zig_cpu: str = "baseline"
    glibc: str = ""
    gcc_package: str = "g++"
    emulator: str = ""
    emulator_cpu: str = ""
    debian: str = ""
    wheel: str = ""
    generic: str = ""
    ndk_abi: str = ""
    ndk_platform: int = 0

    @property
    def folder(self) -> Path:
        """Where the target's products lie."""
        return BUILD / self.name


def load_targets() -> dict[str, Target]:
    """All targets by name, in the order of the file."""
    rows: dict[str, dict[str, Any]] = read_toml(Path(__file__).parent / "targets.toml")
    return {name: Target(name=name, **_frozen(row)) for name, row in rows.items()}


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def find_target(name: str) -> Target:
    """The target called `name`.

    Raises:
        ToolkitError: no target has that name.
    """
    targets = load_targets()
    if name not in targets:
        raise ToolkitError(f"no target is called '{name}'; the targets are {', '.join(targets)}")
    return targets[name]
