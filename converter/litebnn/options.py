"""The options that every `convert_*` function takes: each stands here once, with its type, default and check."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict, TypeVar, cast, get_type_hints

INTERFACE_TYPES = ("float32", "int8")
TARGETS = ("arm",)
LOW_BIT_WEIGHTS = ("int4", "int2")

Dataset: TypeAlias = Callable[[], Iterable[Any]] | Iterable[Any]
Progress: TypeAlias = Callable[[str], None]
F = TypeVar("F", bound=Callable[..., Any])


def _interface_type(name: str, value: Any) -> str:
    known = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", repr(value))
    if known not in INTERFACE_TYPES:
        raise ValueError(f"{name} is {known}, expected {' or '.join(INTERFACE_TYPES)}")
    return str(known)


def _target(name: str, value: Any) -> str:
    if value not in TARGETS:
        raise ValueError(f'{name} is "{value}", expected "arm" (which stands for every CPU)')
    return str(value)


def _range(name: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        low, high = (float(limit) for limit in value)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ValueError(f"{name} is {value}, expected (min, max) with min < max")
    return low, high


def _low_bit_weights(name: str, value: Any) -> str | None:
    if value is not None and value not in LOW_BIT_WEIGHTS:
        raise ValueError(f'{name} is "{value}", expected {" or ".join(LOW_BIT_WEIGHTS)} (or None, as they are)')
    return cast("str | None", value)


@dataclass(frozen=True)
class _Option:
    """A default, and a function of the option's name and value that gives the value to use or raises ValueError."""

    default: Any
    checked: Callable[[str, Any], Any] = lambda name, value: value


class ConvertOptions(TypedDict, total=False):
    """The options by name; `litebnn.convert_tflite` says what they mean."""

    inference_input_type: Annotated[Any, _Option("float32", _interface_type)]
    inference_output_type: Annotated[Any, _Option("float32", _interface_type)]
    target: Annotated[str, _Option("arm", _target)]
    experimental_default_int8_range: Annotated[tuple[float, float] | None, _Option(None, _range)]
    representative_dataset: Annotated[Dataset | None, _Option(None)]
    larq_compatible: Annotated[bool, _Option(False)]
    low_bit_weights: Annotated[str | None, _Option(None, _low_bit_weights)]
    dynamic_range: Annotated[bool, _Option(False)]
    assume_nonzero: Annotated[bool, _Option(False)]
    verify: Annotated[Any, _Option(False)]
    return_report: Annotated[bool, _Option(False)]
    progress: Annotated[Progress, _Option(lambda step: None)]


_HINTS = get_type_hints(ConvertOptions, include_extras=True)
OPTIONS: dict[str, _Option] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}


def checked(given: ConvertOptions) -> ConvertOptions:
    """All options: those that are given, checked, and the defaults of the others.

    Raises:
        TypeError: there is no option of that name.
        ValueError: an option has a value that it cannot have, or two exclude each other.
    """
    for name in given:
        if name not in OPTIONS:
            raise TypeError(f'there is no option "{name}": expected one of {", ".join(OPTIONS)}')
    options = {name: option.checked(name, given.get(name, option.default)) for name, option in OPTIONS.items()}
    if options["experimental_default_int8_range"] is not None:
        for other in ("representative_dataset", "verify"):
            if options[other] is not None and options[other] is not False:
                raise ValueError(f"experimental_default_int8_range and {other} exclude each other")
    if options["dynamic_range"] and options["low_bit_weights"] is None:
        raise ValueError("dynamic_range says how low_bit_weights are read, which is not given")
    return cast(ConvertOptions, options)


def asks_for_more(options: ConvertOptions) -> bool:
    """Whether there is work to do even in a model without a binary layer: int8, or narrow weights."""
    if options["low_bit_weights"] is not None:
        return True
    types = options["inference_input_type"], options["inference_output_type"]
    sources_of_ranges = options["representative_dataset"], options["experimental_default_int8_range"]
    return "int8" in types or any(source is not None for source in sources_of_ranges)


def asks_to_verify(options: ConvertOptions) -> bool:
    return options["verify"] is not None and options["verify"] is not False


def shows_options(function: F) -> F:
    """Gives a function that takes `**options` the signature that spells them out, for help() and editors."""
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    spelled = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=_HINTS[name].__origin__
        )
        for name, option in OPTIONS.items()
    ]
    function.__signature__ = signature.replace(parameters=[*named, *spelled])  # type: ignore[attr-defined]
    return function
