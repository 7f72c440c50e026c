"""What a mutant is, in either language, and which of them are known to compute the same."""

from dataclasses import dataclass

from toolchains.targets import ROOT, read_toml


@dataclass(frozen=True)
class Mutant:
    """One line of a file, its number from 1, as it is and as it is changed."""

    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"

    @property
    def is_equivalent(self) -> bool:
        """Whether equivalent.toml says why it computes the same."""
        return (self.file, self.before.strip(), self.after.strip()) in _EQUIVALENTS


_EQUIVALENTS = {
    (row["file"], row["before"], row["after"]): row["why"]
    for row in read_toml(ROOT / "mutants" / "equivalent.toml")["mutant"]
}
