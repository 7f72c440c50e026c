"""Reads the table of files to download, lock.toml, as typed rows."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from toolchains.targets import ROOT, ToolkitError, read_toml

TABLE = ROOT / "toolchains" / "fetch" / "lock.toml"


@dataclass(frozen=True)
class Locked:
    """One version of a package. The fields are explained in lock.toml."""

    registry: str
    package: str
    version: str
    sha256: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """The package and its version as pip writes them, such as NAME==VERSION."""
        return f"{self.package}=={self.version}"

    @property
    def line(self) -> str:
        """A line of a requirements file that makes pip accept only the files with these hashes."""
        return " ".join([self.requirement, *(f"--hash=sha256:{digest}" for digest in self.sha256)])

    def verify(self, file: Path) -> None:
        """Checks the hash of a downloaded file against lock.toml.

        Raises:
            ToolkitError: the file's hash is none of the hashes in lock.toml.
        """
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest not in self.sha256:
            wanted = " or ".join(self.sha256)
            raise ToolkitError(f"{self.package} {self.version} is not as published: sha256 {digest}, not {wanted}")


def find(name: str) -> Locked:
    """Finds a row of lock.toml by its name.

    Raises:
        ToolkitError: no row has that name.
    """
    rows = read_toml(TABLE)
    if name not in rows:
        raise ToolkitError(f"{TABLE.name} has no row {name}; the rows are {', '.join(rows)}")
    row = rows[name]
    return Locked(row["registry"], row.get("package", name), row["version"], tuple(row["sha256"]))
