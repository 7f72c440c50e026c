"""Runs a PyTorch module's forward so that torch.export can follow it.

torch.export does not follow a forward that reads numbers from tensors (`.item()`) or writes `.data`. In most binarized
networks, neither depends on the inputs. A module therefore first runs eagerly, which shows what export cannot follow.
In the run that is traced then, numbers that depend only on the module's own tensors are constants. A write to `.data`
has an effect in this run only.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from litebnn.errors import ConversionError
from litebnn.frontends.user_lines import Place, calling_line

# Functions that hand numbers of a tensor to Python.
_READS = frozenset(
    (
        *("item", "tolist", "numpy", "equal", "allclose", "is_nonzero"),
        *(f"__{name}__" for name in ("array", "bool", "complex", "contains", "float", "index", "int")),
    )
)
# Functions whose results have the values of their first tensor, and ones whose results have none of its values.
_KEEP_FIRST = frozenset(("expand_as", "reshape_as", "to", "type_as", "view_as"))
_IGNORE_FIRST = frozenset(("full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"))
_RANDOM = frozenset(("bernoulli", "exponential", "geometric", "multinomial", "normal", "random", "uniform"))
_EXPANSIONS = frozenset(("expand", "expand_as", "broadcast_to"))
# Functions that broadcast their tensors, whatever underscores are around their names.
_BROADCASTS = """add sub subtract rsub mul multiply div divide true_divide rdiv rtruediv pow rpow maximum minimum where
    eq ne lt le gt ge greater greater_equal less less_equal fmod remainder atan2 copysign"""
_CONVOLUTIONS = frozenset(("conv2d", "conv_transpose2d", "convolution"))
_AXES_OF_IMAGES = 4


@dataclass
class Read:
    """Numbers that forward reads from a tensor."""

    function: str
    place: Place | None
    # True if the numbers depend on the inputs; `value` is None then.
    depends: bool
    value: Any


@dataclass
class Record:
    """The results of a run of forward, and the steps in it that torch.export would not follow."""

    results: Any = None
    reads: list[Read] = field(default_factory=list)
    # The module's own tensors whose `.data` is used, or that are written. For the id of each, the submodules and
    # attributes that hold it.
    written: dict[int, set[tuple[nn.Module, str]]] = field(default_factory=dict)
    writing: Place | None = None
    # True if forward uses the `.data` of other tensors, expands what is broadcast anyway, or computes weights from its
    # inputs.
    is_rewritten: bool = False

    @property
    def is_followed(self) -> bool:
        """True if torch.export traces forward as it is."""
        return not (self.written or self.is_rewritten or any(not read.depends for read in self.reads))

    @property
    def dependent_read(self) -> Read | None:
        """The first read of numbers that depend on the inputs."""
        return next((read for read in self.reads if read.depends), None)


def record_forward(module: nn.Module, arguments: list[Tensor], named: dict[str, Tensor]) -> Record:
    """Runs a module on copies of its inputs, and leaves its own tensors as they were.

    Raises:
        ConversionError: forward changes tensors of the module so that the next call computes something else.
    """
    with torch.no_grad(), attributes_kept(module), ExitStack() as stack:
        first, second = _Recording(module), _Recording(module)
        stack.callback(first.restore)
        record = first.run(arguments, named)
        if first.has_changed_tensors:
            stack.callback(second.restore)
            again = second.run(arguments, named)
            if not _are_equal(record.results, again.results):
                place = f" ({record.writing})" if record.writing else ""
                raise ConversionError(
                    f"forward changes tensors of the module{place}, and the next call computes something else: write "
                    "them before the conversion, not in forward"
                )
    return record


@contextmanager
def attributes_kept(module: nn.Module) -> Iterator[None]:
    """Undoes what forward assigns to attributes with tensors."""
    before = _tensors_of(module)
    names = {(id(held), name) for _, held, name, _ in before}
    try:
        yield
    finally:
        for _, held, name, _ in _tensors_of(module):
            if (id(held), name) not in names:
                del held[name]
        for _, held, name, tensor in before:
            held[name] = tensor


class _Watching(TorchFunctionMode):  # type: ignore[misc]
    """Sees each call of PyTorch, and which tensors depend on the inputs."""

    def __init__(self) -> None:
        super().__init__()
        # The memory of tensors that depend on the inputs, by its address. Memory that is freed depends on nothing.
        self._dependent: dict[int, weakref.ref[Any]] = {}
        self._expanded: dict[int, tuple[Tensor, Tensor]] = {}

    def mark(self, values: Any) -> None:
        for tensor in _tensors(values):
            held = tensor.untyped_storage() if _is_strided(tensor) else tensor
            self._dependent[_memory(tensor)] = weakref.ref(held)

    def depends(self, values: Any) -> bool:
        found = (self._dependent.get(_memory(tensor)) for tensor in _tensors(values))
        return any(reference is not None and reference() is not None for reference in found)

    def call(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function, and notes whether its results depend on the inputs."""
        is_random = name.startswith("rand") or name.rstrip("_") in _RANDOM
        sources = args[:1] if name in _KEEP_FIRST else (args[1:] if name in _IGNORE_FIRST else args, kwargs)
        depends = is_random or self.depends(sources)
        result = func(*args, **kwargs)
        if depends:
            self.mark((result, args[:1] if _writes(name) else (), kwargs.get("out")))
        if name in _EXPANSIONS:
            self._expanded[id(result)] = result, args[0]
        return result

    def unexpanded(self, name: str, args: tuple[Any, ...]) -> dict[int, Tensor]:
        """The operands, by their position, that a function broadcasts to the shape to which they are expanded."""
        found: dict[int, Tensor] = {}
        if name.strip("_") not in _BROADCASTS.split() or not self._expanded:
            return found
        for index, operand in enumerate(args):
            others = [found.get(place, other) for place, other in enumerate(args) if place != index]
            _, source = self._expanded.get(id(operand), (None, None))
            if source is not None and _broadcasts(source, operand, [*_tensors(others)]):
                found[index] = source
        return found


class _Recording(_Watching):
    """An eager run. The method `restore` undoes what forward wrote to the module's tensors."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = module
        self._record = Record()
        self._owners: dict[int, list[tuple[nn.Module, str, Tensor]]] = {}
        for part, _, name, tensor in _tensors_of(module):
            self._owners.setdefault(_memory(tensor), []).append((part, name, tensor))
        self._saved: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def run(self, arguments: list[Tensor], named: dict[str, Tensor]) -> Record:
        given = [tensor.clone() for tensor in arguments]
        by_name = {name: tensor.clone() for name, tensor in named.items()}
        self.mark((given, by_name))
        with self:
            self._record.results = self._module(*given, **by_name)
        return self._record

    @property
    def has_changed_tensors(self) -> bool:
        return any(not _are_equal(tensor.data, before) for tensor, _, before in self._saved.values())

    def restore(self) -> None:
        for tensor, memory, before in self._saved.values():
            tensor.data = memory
            memory.copy_(before)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs, record = _name(func), kwargs or {}, self._record
        is_data = _is_data(func)
        if is_data or _writes(name):
            self._before_write(args[0], None if name == "__get__" else calling_line(sys._getframe(1)))
            record.is_rewritten |= is_data
        record.is_rewritten |= bool(self.unexpanded(name, args)) or _has_computed_weights(self, name, args)
        record.is_rewritten |= _subtracted(self, name, args, kwargs) is not None
        result = self.call(name, func, args, kwargs)
        if name in _READS:
            depends, place = self.depends((args, kwargs)), calling_line(sys._getframe(1))
            # In export, PyTorch itself makes a list number by number.
            numbers = pytree.tree_leaves(result) if name == "tolist" else [result]
            name = "item" if name == "tolist" else name
            record.reads += [Read(name, place, depends, None if depends else copy.deepcopy(each)) for each in numbers]
        return result

    def _before_write(self, target: Tensor, place: Place | None) -> None:
        """Notes that a tensor may be written, and saves the tensors of the module with the same memory."""
        for part, name, tensor in self._owners.get(_memory(target), ()):
            self._record.writing = self._record.writing or place
            self._record.written.setdefault(id(tensor), set()).add((part, name))
            if id(tensor) not in self._saved:
                self._saved[id(tensor)] = tensor, tensor.data, tensor.detach().clone()


class Replay(_Watching):
    """A run that torch.export traces.

    A tensor that is written by its `.data` keeps its identity, so this class replaces it by its new values wherever
    it is used.
    """

    def __init__(self, record: Record, inputs: list[Tensor]) -> None:
        super().__init__()
        self._reads = iter(record.reads)
        self._values: dict[int, tuple[Tensor, Tensor]] = {}
        for owners in record.written.values():
            tensors = [getattr(part, name) for part, name in owners]
            value = tensors[0].detach().clone()
            self._values |= {id(tensor): (tensor, value) for tensor in tensors}
        self.mark(inputs)

    def current(self, values: Any) -> Any:
        """The values with each tensor replaced by what was written to it."""
        return pytree.tree_map_only(Tensor, lambda tensor: self._values.get(id(tensor), (None, tensor))[1], values)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, target = _name(func), args[0] if args else None
        args, kwargs = self.current(args), self.current(kwargs or {})
        if _is_data(func):
            if name == "__get__":
                return args[0].detach()
            self._values[id(target)] = target, args[1].detach()
            return None
        if name in _READS:
            read = next(self._reads, None)
            if read is not None and read.function == name and not read.depends:
                return copy.deepcopy(read.value)
        unexpanded = self.unexpanded(name, args)
        args = tuple(unexpanded.get(index, value) for index, value in enumerate(args))
        if _has_computed_weights(self, name, args):
            # litert-torch moves the axes of four-dimensional tensors, but not of a convolution's weights. Through a
            # vector, weights keep their order.
            args = args[0], args[1].reshape(-1).reshape(args[1].shape), *args[2:]
        if (subtraction := _subtracted(self, name, args, kwargs)) is not None:
            numbers, tensor = subtraction
            args = self.call("neg", torch.neg, (tensor,), {}), numbers
            name, func = "add", torch.add
        return self.call(name, func, args, kwargs)


def _has_computed_weights(watching: _Watching, name: str, args: tuple[Any, ...]) -> bool:
    """True for a convolution of images whose weights depend on the inputs."""
    return name in _CONVOLUTIONS and len(args) > 1 and args[1].dim() == _AXES_OF_IMAGES and watching.depends(args[1])


def _subtracted(
    watching: _Watching, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Tensor] | None:
    """The operands of `numbers - tensor`, if the numbers do not depend on the inputs, and the tensor is an image that
    does. None for other calls. litert-torch swaps these operands where it changes the layout of the image.
    """
    order = {"sub": (0, 1), "subtract": (0, 1), "rsub": (1, 0)}.get(name.strip("_"))
    if order is None or kwargs or len(args) != len(order) or _writes(name):
        return None
    numbers, tensor = (args[place] for place in order)
    is_image = isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.dim() == _AXES_OF_IMAGES
    return (numbers, tensor) if is_image and watching.depends(tensor) and not watching.depends(numbers) else None


def _name(func: Any) -> str:
    """The name of a function or an operator, "add" for aten.add.Tensor."""
    return str(getattr(func, "__name__", "")).partition(".")[0]


def _writes(name: str) -> bool:
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _is_data(func: Any) -> bool:
    """True for the access to a tensor's attribute `data`."""
    return getattr(func, "__self__", None) is torch.Tensor.data


def _broadcasts(source: Tensor, expanded: Tensor, others: list[Tensor]) -> bool:
    """True if a function of `source` and other tensors broadcasts `source` to the shape of `expanded`."""
    if not source.dim() and any(other.dtype != source.dtype for other in others):
        return False  # a scalar does not take part in the choice of the result's type
    missing = expanded.dim() - source.dim()
    for axis, size in enumerate(expanded.shape):
        is_there = axis >= missing and str(source.shape[axis - missing]) == str(size)
        places = [other.dim() - expanded.dim() + axis for other in others]
        sizes = [str(other.shape[place]) for other, place in zip(others, places, strict=True) if place >= 0]
        if not is_there and str(size) not in sizes:
            return False
    return True


def _tensors(values: Any) -> Iterable[Tensor]:
    return (leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor))


def _memory(tensor: Tensor) -> int:
    """A number that tensors have in common if they share memory. A tensor without strides has none to share."""
    return tensor.untyped_storage()._cdata if _is_strided(tensor) else id(tensor)


def _is_strided(tensor: Tensor) -> bool:
    return bool(tensor.layout == torch.strided)


def _are_equal(one: Any, other: Any) -> bool:
    """True if the tensors in two structures are equal; NaN is equal to NaN."""
    pairs = list(zip(_tensors(one), _tensors(other), strict=True))
    return all(a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in pairs)


def _tensors_of(module: nn.Module) -> list[tuple[nn.Module, dict[str, Any], str, Tensor]]:
    """The parameters, buffers and other tensors that a module and its submodules have as attributes. Each comes with
    its module, and the dictionary that holds it.
    """
    return [
        (part, held, name, value)
        for part in module.modules()
        for held in (part._parameters, part._buffers, vars(part))
        for name, value in held.items()
        if isinstance(value, Tensor) and not nn.parameter.is_lazy(value)
    ]
