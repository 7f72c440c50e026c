import pytest

from litebnn.rewriting.padding import same_padding


@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "expected"),
    [
        (10, 3, 1, 1, (1, 10)),
        (10, 3, 2, 1, (0, 5)),
        (9, 3, 2, 1, (1, 5)),
        (10, 5, 1, 2, (4, 10)),
        (10, 2, 1, 1, (0, 10)),
        (10, 1, 3, 1, (0, 4)),
        (1, 3, 2, 1, (1, 1)),
    ],
)
def test_same_padding_splits_as_tensorflow_does(
    size: int, taps: int, stride: int, dilation: int, expected: tuple[int, int]
) -> None:
    assert same_padding(size, taps, stride, dilation) == expected
