from types import SimpleNamespace

import pytest

from litebnn.frontends.torch import _one_line, _reason_of_read
from litebnn.frontends.user_lines import Place


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("item", "reads a data-dependent value by .item()"),
        ("tolist", "reads a data-dependent value by .tolist()"),
        ("__float__", "reads a data-dependent value by float()"),
        ("__bool__", "branches on a data-dependent value"),
    ],
)
def test_a_read_of_what_depends_on_the_input_is_named_with_its_line(function: str, said: str) -> None:
    reason = _reason_of_read(SimpleNamespace(function=function, place=Place("networks.py", 12)))
    assert reason.startswith(f"forward {said} (networks.py, line 12): ")
    assert "torch.where" in reason


FORWARD = """

def forward():
    raise RuntimeError("Lowering not found: svd\\nmore")
"""


def test_an_error_in_forward_is_one_line_with_the_line_of_the_module() -> None:
    names = {"__name__": "networks"}
    exec(compile(FORWARD, "networks.py", "exec"), names)
    with pytest.raises(RuntimeError) as caught:
        names["forward"]()
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert _one_line(error) == "Lowering not found: svd (networks.py, line 4); replace that operation"
    elsewhere = RuntimeError('Lowering not found: svd\n  File "networks.py", line 7, in forward')
    assert _one_line(elsewhere) == "Lowering not found: svd (networks.py, line 7); replace that operation"
