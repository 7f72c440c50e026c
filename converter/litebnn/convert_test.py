"""Tests that the converter loads only what a conversion needs."""

import subprocess
import sys

NOT_NEEDED = ("evaluate", "frontends", "quantize", "report", "runtime", "safety", "verify", "zoo")


def test_importing_the_converter_and_its_rules_loads_no_other_room() -> None:
    code = "import sys, litebnn.convert, litebnn.rules.phases; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "litebnn.rules.binarize.binarize_layers" in loaded
    assert [name for name in loaded if name.startswith(tuple(f"litebnn.{room}" for room in NOT_NEEDED))] == []
