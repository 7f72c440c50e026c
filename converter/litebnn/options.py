"""The options of every `convert_*` function, each with its type, default and check."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict, TypeVar, cast, get_type_hints

from litebnn.errors import shown

INTERFACE_TYPES = ("float32", "int8", "uint8")
STEM_TYPES = ("int8",)
TARGETS = ("arm",)
LOW_BIT_WEIGHTS = ("int4", "int2")
_LARGEST = 1e15

Dataset: TypeAlias = Callable[[], Iterable[Any]] | Iterable[Any]
Progress: TypeAlias = Callable[[str], None]
F = TypeVar("F", bound=Callable[..., Any])


def _type_among(types: tuple[str, ...]) -> Callable[[str, Any], str]:
    def checked_type(name: str, value: Any) -> str:
        known = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None)
        if known not in types:
            raise ValueError(f"{name} is {shown(known or value)}, expected {', '.join(types[:-1])} or {types[-1]}")
        return str(known)

    return checked_type


def _one_of(known: tuple[str | None, ...], expected: str) -> Callable[[str, Any], Any]:
    def checked_name(name: str, value: Any) -> Any:
        # Other types are not compared, because the comparison of an array gives an array.
        if not (value is None or isinstance(value, str)) or value not in known:
            raise ValueError(f'{name} is "{shown(value)}", expected {expected}')
        return value

    return checked_name


def _range(name: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        low, high = (float(limit) for limit in (() if isinstance(value, str | bytes) else value))
    except (TypeError, ValueError):
        low = high = 0.0
    except OverflowError:  # an integer beyond the range of floats
        low, high = 0.0, math.inf
    if not low < high:
        raise ValueError(f"{name} is {shown(value)}, expected (min, max) with min < max")
    # Outside of these limits, the scale of the range, or the product of two such scales, might not be a normal float32.
    if max(abs(low), abs(high)) > _LARGEST or high - low < 1 / _LARGEST:
        expected = f"expected numbers up to {_LARGEST:g} that differ by {1 / _LARGEST:g}"
        raise ValueError(f"{name} is {shown(value)}, {expected}")
    return low, high


def _flag(name: str, value: Any) -> bool:
    # NumPy's booleans are recognized by the name of their class, because the command line's help must not import NumPy.
    if type(value).__name__ not in ("bool", "bool_"):
        raise _wrong_type(name, value, "True or False")
    return bool(value)


def _dataset(name: str, value: Any) -> Any:
    if value is not None and not callable(value) and not _holds_samples(value):
        raise _wrong_type(name, value, "samples, a function that yields them, or a litebnn.DataSet")
    return value


def _verify(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, bool) and not _holds_samples(value):
        raise _wrong_type(name, value, "True, False, an array for each input, or a litebnn.DataSet")
    return value


def _progress(name: str, value: Any) -> Progress:
    if not callable(value):
        raise _wrong_type(name, value, "a function that takes the name of a step")
    return cast(Progress, value)


def _holds_samples(value: Any) -> bool:
    # The class `litebnn.DataSet` is recognized by its method `results`, because this module may not import the class.
    return hasattr(value, "results") or (isinstance(value, Iterable) and not isinstance(value, str | bytes))


def _wrong_type(name: str, value: Any, expected: str) -> TypeError:
    return TypeError(f"{name} is {type(value).__name__}, expected {expected}")


@dataclass(frozen=True)
class _Option:
    """The default of an option and its check.

    The check is a function of the option's name and value. It returns the value, or raises a TypeError or ValueError
    that names the option.
    """

    default: Any
    checked: Callable[[str, Any], Any] = lambda name, value: value


class ConvertOptions(TypedDict, total=False):
    """The options by name; `litebnn.convert_tflite` documents them."""

    inference_input_type: Annotated[Any, _Option("float32", _type_among(INTERFACE_TYPES))]
    inference_output_type: Annotated[Any, _Option("float32", _type_among(INTERFACE_TYPES))]
    target: Annotated[str, _Option("arm", _one_of(TARGETS, '"arm" (which stands for every CPU)'))]
    experimental_default_int8_range: Annotated[tuple[float, float] | None, _Option(None, _range)]
    representative_dataset: Annotated[Dataset | None, _Option(None, _dataset)]
    stem: Annotated[str | None, _Option(None, _one_of((None, *STEM_TYPES), "int8 (or None, as it is)"))]
    input_range: Annotated[tuple[float, float] | None, _Option(None, _range)]
    larq_compatible: Annotated[bool, _Option(False, _flag)]
    low_bit_weights: Annotated[
        str | None, _Option(None, _one_of((None, *LOW_BIT_WEIGHTS), "int4 or int2 (or None, as they are)"))
    ]
    dynamic_range: Annotated[bool, _Option(False, _flag)]
    assume_nonzero: Annotated[bool, _Option(False, _flag)]
    verify: Annotated[Any, _Option(None, _verify)]
    return_report: Annotated[bool, _Option(False, _flag)]
    progress: Annotated[Progress, _Option(lambda step: None, _progress)]


_HINTS = get_type_hints(ConvertOptions, include_extras=True)
OPTIONS: dict[str, _Option] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}
_ABOUT_THE_RUN = ("target", "verify", "return_report", "progress")
_ABOUT_BITS = ("larq_compatible", "assume_nonzero")


def checked(given: ConvertOptions) -> ConvertOptions:
    """All options: checked values for the given ones, and defaults for the others.

    Raises:
        TypeError: there is no option of that name, or an option's value has a type that it cannot have.
        ValueError: an option's value is invalid, or two options exclude each other.
    """
    for name in given:
        if name not in OPTIONS:
            raise TypeError(f'there is no option "{name}": expected one of {", ".join(OPTIONS)}')
    options = {name: option.checked(name, given.get(name, option.default)) for name, option in OPTIONS.items()}
    if options["experimental_default_int8_range"] is not None:
        for other in ("representative_dataset", "verify"):
            if options[other] is not None and options[other] is not False:
                raise ValueError(f"experimental_default_int8_range and {other} exclude each other")
    if options["stem"] is not None:
        for other in ("representative_dataset", "experimental_default_int8_range"):
            if options[other] is not None:
                raise ValueError(f"stem and {other} exclude each other")
        if options["input_range"] is None:
            raise ValueError("stem is given without input_range, expected the (min, max) of the network's images")
    elif options["input_range"] is not None:
        raise ValueError("input_range is the range of a stem's images, and stem is not given")
    if options["dynamic_range"] and options["low_bit_weights"] is None:
        raise ValueError("dynamic_range says how low_bit_weights are read, which is not given")
    return cast(ConvertOptions, options)


def asked_rewrites(options: ConvertOptions) -> list[str]:
    """The names of options that are not at their defaults and change the result."""
    return [name for name in OPTIONS if name not in _ABOUT_THE_RUN and _is_given(options, name)]


def asks_for_more(options: ConvertOptions) -> bool:
    """True if the options ask for work even on a model without binary layers: int8, or low-bit weights."""
    return any(name not in _ABOUT_BITS for name in asked_rewrites(options))


def _is_given(options: ConvertOptions, name: str) -> bool:
    # The samples may be arrays. For arrays, the operator `!=` would compare element by element.
    value, default = options[name], OPTIONS[name].default  # type: ignore[literal-required]
    return value != default if isinstance(default, str) else value is not default


def asks_to_verify(options: ConvertOptions) -> bool:
    return options["verify"] is not None and options["verify"] is not False


def verifies(options: ConvertOptions) -> bool:
    """True if a conversion is verified: on request, and by default with `assume_nonzero`, unless the ranges of int8 are
    made up."""
    by_default = options["assume_nonzero"] and options["experimental_default_int8_range"] is None
    return asks_to_verify(options) or (options["verify"] is None and by_default)


def shows_options(function: F) -> F:
    """Gives a function that takes `**options` a signature that lists all options, for help() and editors."""
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
