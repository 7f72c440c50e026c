"""Scopes in which weights are read as quantized values, and scopes that set the metrics of new quantizers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator

AVAILABLE_METRICS = frozenset({"flip_ratio"})

_state = threading.local()
_training_metrics: set[str] = set()


def should_quantize() -> bool:
    """True if the weights of quantized layers are read as their quantized values in this thread."""
    return getattr(_state, "quantize", False)


@contextlib.contextmanager
def quantized_scope(quantize: bool) -> Iterator[bool]:
    """Chooses the values that are read from weights with a quantizer: the quantized ones, or the latent ones that are
    trained.

    Example::

        with lq.context.quantized_scope(True):
            binary_weights = model.get_weights()
            model.save("binary.keras")
    """
    before = should_quantize()
    _state.quantize = quantize
    try:
        yield quantize
    finally:
        _state.quantize = before


@contextlib.contextmanager
def metrics_scope(metrics: Iterable[str] = ()) -> Iterator[set[str]]:
    """Adds metrics to the kernel quantizers of layers that are made in this scope.

    Args:
        metrics: names; the only one is "flip_ratio", the share of a layer's weights that changed their value in a step.

    Raises:
        ValueError: a name is unknown.
    """
    added = set(metrics)
    check_metrics(added)
    before = _training_metrics.copy()
    _training_metrics.update(added)
    try:
        yield _training_metrics
    finally:
        _training_metrics.clear()
        _training_metrics.update(before)


def get_training_metrics() -> set[str]:
    """The names that `metrics_scope` has set. The result is the set itself, not a copy."""
    return _training_metrics


def check_metrics(names: Iterable[str]) -> None:
    """Raises ValueError if a name is not a metric of quantizers."""
    unknown = sorted(set(names) - AVAILABLE_METRICS)
    if unknown:
        raise ValueError(
            f'unknown training metric "{unknown[0]}", expected one of {", ".join(sorted(AVAILABLE_METRICS))}'
        )
