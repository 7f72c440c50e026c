"""The options of every `convert_*` function, a row each: default, check, help, and how options depend on each other.

The functions' signatures and docstrings, the command line of `litebnn convert` and the table of docs/converter.md are
made of these rows.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, cast, get_type_hints

from litebnn.errors import shown

_INTERFACE_TYPES = ("float32", "int8", "uint8")
_LOW_BITS = ("int4", "int2")
_LARGEST = 1e15

Dataset: TypeAlias = Callable[[], Iterable[Any]] | Iterable[Any]
Progress: TypeAlias = Callable[[str], None]
F = TypeVar("F", bound=Callable[..., Any])


class _Kind(NamedTuple):
    """The values that an option can have.

    `checked` is a function of the option's name and value. It returns the value, or raises a TypeError or ValueError
    that names the option. `arguments` are those of argparse's `add_argument`; None if a command line has no values of
    the kind.
    """

    checked: Callable[[str, Any], Any]
    arguments: Mapping[str, Any] | None = None


def _type_among(types: tuple[str, ...]) -> _Kind:
    def checked_type(name: str, value: Any) -> str:
        known = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None)
        if known not in types:
            raise ValueError(f"{name} is {shown(known or value)}, expected {', '.join(types[:-1])} or {types[-1]}")
        return str(known)

    return _Kind(checked_type, {"choices": types})


def _one_of(known: tuple[str, ...], expected: str, or_none: bool = True) -> _Kind:
    def checked_name(name: str, value: Any) -> Any:
        # Other types are not compared, because the comparison of an array gives an array.
        if not (value is None and or_none) and not (isinstance(value, str) and value in known):
            raise ValueError(f'{name} is "{shown(value)}", expected {expected}')
        return value

    return _Kind(checked_name, {"choices": known} if or_none else None)


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


_FLAG = _Kind(_flag, {"action": "store_true"})
_RANGE = _Kind(_range, {"type": float, "nargs": 2, "metavar": ("MIN", "MAX")})


@dataclass(frozen=True)
class Option:
    """A row: what is known of an option, but for its name and type."""

    default: Any
    kind: _Kind
    # The first sentence is the help on the command line.
    help: str
    # The page, and its section, that says more.
    page: str = ""
    # Another spelling on the command line.
    alias: str = ""
    # What the option changes: "run" nothing in the result, "bits" binary layers only, "model" also a model without any.
    changes: Literal["run", "bits", "model"] = "model"
    needs: str = ""
    excludes: tuple[str, ...] = ()

    @property
    def first_sentence(self) -> str:
        """The help's first sentence, without its full stop."""
        return self.help.partition(". ")[0].removesuffix(".")


class ConvertOptions(TypedDict, total=False):
    """The options by name."""

    inference_input_type: Annotated[
        Any,
        Option(
            "float32",
            _type_among(_INTERFACE_TYPES),
            "type of the result's inputs: float32, int8 or uint8. It is a name, or a type of NumPy or TensorFlow. int8 "
            "and uint8 need a quantized model, or a `stem`.",
            "int8.md#the-whole-network",
        ),
    ]
    inference_output_type: Annotated[
        Any,
        Option(
            "float32",
            _type_among(_INTERFACE_TYPES),
            "type of the result's outputs, as for `inference_input_type`.",
        ),
    ]
    target: Annotated[
        str,
        Option(
            "arm",
            _one_of(("arm",), '"arm" (which stands for every CPU)', or_none=False),
            '"arm", the only value, which stands for every CPU.',
            changes="run",
        ),
    ]
    experimental_default_int8_range: Annotated[
        tuple[float, float] | None,
        Option(
            None,
            _RANGE,
            "(min, max) of every tensor whose range is unknown, for an int8 model that only measures latency. Its "
            "outputs are meaningless.",
            alias="default_int8_range",
            excludes=("representative_dataset", "verify"),
        ),
    ]
    representative_dataset: Annotated[
        Dataset | None,
        Option(
            None,
            _Kind(_dataset),
            "convert the layers that are not binary to int8, with ranges from these samples. A sample is an array of "
            "the input's shape; for several inputs it is a list, or a dictionary by the names of the model's "
            "signature. A function that yields samples, or a `litebnn.DataSet`, is accepted too.",
            "evaluate.md#converting-with-a-data-set",
            alias="representative_data",
        ),
    ]
    stem: Annotated[
        str | None,
        Option(
            None,
            _one_of(("int8",), "int8 (or None, as it is)"),
            "type of the first convolutions, of 1 to 4 channels, which read the network's images: int8. The option "
            "needs `input_range`, and no samples.",
            "int8.md#the-stem-alone",
            needs="input_range",
            excludes=("representative_dataset", "experimental_default_int8_range"),
        ),
    ]
    input_range: Annotated[
        tuple[float, float] | None,
        Option(None, _Kind(_range), "(min, max) of the network's images, after preprocessing.", needs="stem"),
    ]
    larq_compatible: Annotated[
        bool,
        Option(
            False,
            _FLAG,
            "write a file that Larq Compute Engine's own runtime reads too. It has no explicit padding, and no ops "
            "fused into a layer that pads with zeros, which is slower. Explicit padding with zeros becomes two "
            "convolutions and their mean.",
            changes="bits",
        ),
    ]
    low_bit_weights: Annotated[
        str | None,
        Option(
            None,
            _one_of(_LOW_BITS, "int4 or int2 (or None, as they are)"),
            "type of the ternary and ±alpha weights of dense layers that are not binary: int4 or int2. The file gets "
            "smaller and needs a newer runtime, which the report names. With either value, ±alpha weights of float "
            "convolutions take one bit each, and ternary ones two, which needs litebnn's library. Results are equal.",
            "quantized.md#low-bit-weights",
        ),
    ]
    dynamic_range: Annotated[
        bool,
        Option(
            False,
            _FLAG,
            "quantize the inputs of layers with `low_bit_weights` to int8 at run time. They get faster, and results "
            "change by about 1 %.",
            needs="low_bit_weights",
        ),
    ]
    assume_nonzero: Annotated[
        bool,
        Option(
            False,
            _FLAG,
            "convert sign(x) as +1 where x is 0, although the source gives 0. The report names each such sign. The "
            "sign functions of PyTorch and TensorFlow need this option. Zeros that are certain or likely, such as "
            "those of padding and of sums of signs, stay 0.",
            "idioms.md",
            changes="bits",
        ),
    ]
    verify: Annotated[
        Any,
        Option(
            None,
            _Kind(_verify),
            "compare the outputs of source and result on the samples of `representative_dataset`, else on random "
            "inputs; the default with `assume_nonzero`. They run in the installed runtime, and a difference is an "
            "error. Instead of True, the inputs themselves: an array, or a list or dictionary with one for each input, "
            "batch first; or a `litebnn.DataSet`. By default, a warning instead of an error says if the models cannot "
            "be run.",
            "verify.md",
            changes="run",
        ),
    ]
    return_report: Annotated[
        bool,
        Option(
            False,
            _Kind(_flag),
            "return (bytes, ConversionReport) instead of the bytes.",
            "report.md",
            changes="run",
        ),
    ]
    progress: Annotated[
        Progress,
        Option(
            lambda step: None,
            _Kind(_progress),
            "function that is called with the name of each step.",
            changes="run",
        ),
    ]


def flag_of(name: str) -> str:
    """The option's spelling on a command line.

    >>> flag_of("input_range")
    '--input-range'
    """
    return f"--{name.replace('_', '-')}"


_HINTS = get_type_hints(ConvertOptions, include_extras=True)
OPTIONS: dict[str, Option] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}
DEFAULTS = cast(ConvertOptions, {name: option.default for name, option in OPTIONS.items()})


def checked(given: ConvertOptions) -> ConvertOptions:
    """All options: checked values for the given ones, and defaults for the others.

    Raises:
        TypeError: there is no option of that name, or an option's value has a type that it cannot have.
        ValueError: an option's value is invalid, or an option is given with one that it excludes, or without one that
            it needs.
    """
    for name in given:
        if name not in OPTIONS:
            raise TypeError(f'there is no option "{name}": expected one of {", ".join(OPTIONS)}')
    options = {name: OPTIONS[name].kind.checked(name, value) for name, value in {**DEFAULTS, **given}.items()}
    is_given = {name: _is_given(options, name) for name in OPTIONS}
    for name, option in OPTIONS.items():
        for other in option.excludes:
            if is_given[name] and is_given[other]:
                raise ValueError(f"{name} and {other} exclude each other")
    for name, option in OPTIONS.items():
        if option.needs and is_given[name] and not is_given[option.needs]:
            raise ValueError(f"{name} is given without {option.needs}: {OPTIONS[option.needs].first_sentence}")
    return cast(ConvertOptions, options)


def asked_rewrites(options: ConvertOptions) -> list[str]:
    """The names of options that are not at their defaults and change the result."""
    return [name for name, option in OPTIONS.items() if option.changes != "run" and _is_given(options, name)]


def asks_for_more(options: ConvertOptions) -> bool:
    """True if the options ask for work even on a model without binary layers: int8, or low-bit weights."""
    return any(OPTIONS[name].changes == "model" for name in asked_rewrites(options))


def _is_given(options: Mapping[str, Any], name: str) -> bool:
    # The samples may be arrays. For arrays, the operator `!=` would compare element by element.
    value, default = options[name], OPTIONS[name].default
    return value != default if isinstance(default, str) else value is not default and value is not False


def asks_to_verify(options: ConvertOptions) -> bool:
    return _is_given(options, "verify")


def verifies(options: ConvertOptions) -> bool:
    """True if a conversion is verified: on request, and by default with `assume_nonzero`, unless the ranges of int8 are
    made up."""
    by_default = options["assume_nonzero"] and options["experimental_default_int8_range"] is None
    return asks_to_verify(options) or (options["verify"] is None and by_default)


def shows_options(function: F) -> F:
    """Gives a function that takes `**options` a signature that lists all options, for help() and editors.

    A line "**options: ..." of its docstring becomes the help of every option.
    """
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    spelled = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=_HINTS[name].__origin__
        )
        for name, option in OPTIONS.items()
    ]
    function.__signature__ = signature.replace(parameters=[*named, *spelled])  # type: ignore[attr-defined]
    if function.__doc__:  # None under python -OO
        function.__doc__ = re.sub(r"    \*\*options: .*", lambda _: _explained(), inspect.cleandoc(function.__doc__))
    return function


def _explained() -> str:
    lines = (f"{name}: {option.help}" for name, option in OPTIONS.items())
    return "\n".join(
        textwrap.fill(line, 116, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False)
        for line in lines
    )
