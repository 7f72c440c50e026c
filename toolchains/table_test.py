from rich.console import Console

from toolchains.table import table
from toolchains.targets import load_targets


def test_every_target_has_a_row() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table())
    lines = capture.get().splitlines()
    for target in load_targets().values():
        row = next(line for line in lines if line.startswith(f"│ {target.name} "))
        assert target.triple in row
        assert target.glibc in row
