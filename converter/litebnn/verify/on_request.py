"""Verifies a conversion on the data that the caller gives: inputs, a data set, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from litebnn.errors import ConversionError, boundary, warn
from litebnn.graph import Array
from litebnn.options import ConvertOptions, asks_to_verify
from litebnn.rules.build.notes import Layer
from litebnn.runtime.predictor import arrays_of
from litebnn.verify.assumption import as_assumed
from litebnn.verify.exact_zeros import Assumed
from litebnn.verify.verification import (
    DifferenceError,
    SideBySide,
    Verification,
    as_verification,
    joined,
    of_some,
    verify_apart,
)

_VERIFIED_SAMPLES = 16


def verification_of(
    source: bytes, result: bytes, names: list[str], layers: Sequence[Layer], options: ConvertOptions
) -> Verification | None:
    """Verifies a conversion on the given inputs, else on the calibration samples, else on random inputs.

    Random inputs lie in the range that the option `input_range` states. `names` are the names of the source's inputs.
    `layers` are the source's layers, for the report. If `verify` is not given, a warning says so if the conversion
    cannot be verified, and None is returned.

    Raises:
        ConversionError: a difference was found, or a verification that the caller asks for is not possible.
    """
    options["progress"]("verifying")
    with boundary():
        assumed = as_assumed(source, layers) if options["assume_nonzero"] else None
    if asks_to_verify(options):
        found = _verified(source, result, names, options, assumed)
    else:
        try:
            found = _verified(source, result, names, options, assumed)
        except (ConversionError, ValueError) as error:
            if isinstance(error, DifferenceError) or isinstance(error.__cause__, DifferenceError):
                raise ConversionError(f"{error} (verify=False leaves out this check)") from error
            _warn(f"the conversion is not verified: {error}")
            return None
    for line in found.warnings():
        _warn(line)
    return found


def _verified(
    source: bytes, result: bytes, names: list[str], options: ConvertOptions, assumed: Assumed | None
) -> Verification:
    inputs, dataset = options["verify"], options["representative_dataset"]
    is_given = inputs is not None and inputs is not True
    given = inputs if is_given else dataset
    if given is not None and hasattr(
        given, "results"
    ):  # a litebnn.DataSet, of which one batch is enough unless the caller asks for more
        found = given.results("verify", _VerifyBatch(source, result, assumed), None if inputs else 1)
        return of_some(joined([*map(as_verification, found)]))
    arrays: list[Array] | None = None
    if is_given:
        arrays = arrays_of(inputs, names)
    elif dataset is not None:
        samples = islice(dataset() if callable(dataset) else dataset, _VERIFIED_SAMPLES)
        columns = zip(*(arrays_of(sample, names) for sample in samples), strict=True)
        arrays = [np.concatenate(column) for column in columns] or None
    return verify_apart(source, result, arrays, options["input_range"], assumed)


def _warn(line: str) -> None:
    warn(line, __name__, "litebnn.convert")


@dataclass(frozen=True)
class _VerifyBatch:
    """A job of a data set: runs a model and its conversion on a batch, and compares the outputs."""

    source: bytes
    converted: bytes
    assumed: Assumed | None

    def prepared(self) -> tuple[Any, Callable[[list[Array]], dict[str, Any]]]:
        models = SideBySide(self.source, self.converted, self.assumed)
        return models.models[0], lambda inputs: asdict(
            models.compare([[one] for one in inputs]) if inputs else Verification(0.0, 0)
        )
