import pytest

from litebnn.graph import Tensor
from litebnn.report.op_properties import bytes_of


@pytest.mark.parametrize(("type", "size"), [("FLOAT32", 24), ("BOOL", 6), ("INT4", 3), ("BFLOAT16", 12), ("STRING", 0)])
def test_a_computed_tensor_takes_the_bits_of_its_type(type: str, size: int) -> None:
    assert bytes_of(Tensor("x", type, (2, 3))) == size
