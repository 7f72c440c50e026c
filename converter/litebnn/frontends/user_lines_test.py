from collections.abc import Callable
from typing import Any

import pytest

from litebnn.frontends.user_lines import Place, calling_line, failing_line

Function = Callable[..., Any]


def function(module: str, file: str, line: int, body: str = "return inner(*rest)") -> Function:
    """A function on a line of a file, by default one that calls its first argument with the others."""
    names: dict[str, Any] = {"__name__": module}
    exec(compile("\n" * (line - 2) + f"def call(inner=None, *rest):\n    {body}", file, "exec"), names)
    call: Function = names["call"]
    return call


PROGRAM = function("__main__", "program.py", 80)
EXPORT = function("litebnn.frontends.torch", "frontends/torch.py", 200)
TORCH = function("torch.nn.modules.module", "torch/nn/modules/module.py", 1500)
OUTER = function("networks", "networks.py", 12)
INNER = function("networks", "networks.py", 34)
GENERATED = function("", "<eval_with_key>.1", 2)
LAYER = function("litebnn.torch.layers", "litebnn/torch/layers.py", 7)
COPY = function("copy", "copy.py", 60)
FAILS = function("torch.functional", "torch/functional.py", 9, "raise RuntimeError")
FRAME = function("torch.overrides", "torch/overrides.py", 9, "import sys; return sys._getframe()")


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        ((PROGRAM, EXPORT, TORCH, OUTER, TORCH, INNER, TORCH), Place("networks.py", 34)),
        ((PROGRAM, EXPORT, TORCH, OUTER, LAYER, TORCH), Place("networks.py", 12)),
        ((PROGRAM, EXPORT, OUTER, COPY), Place("networks.py", 12)),
        ((PROGRAM, EXPORT, TORCH, GENERATED, TORCH), None),
        ((OUTER, EXPORT, TORCH), None),
    ],
)
def test_the_innermost_line_of_the_users_forward_is_found(stack: tuple[Function, ...], place: Place | None) -> None:
    first, *rest = stack
    assert calling_line(first(*rest, FRAME)) == place
    with pytest.raises(RuntimeError) as caught:
        first(*rest, FAILS)
    assert failing_line(caught.value.__traceback__) == place


def test_a_place_is_a_file_and_a_line() -> None:
    assert str(Place("networks.py", 34)) == "networks.py, line 34"
