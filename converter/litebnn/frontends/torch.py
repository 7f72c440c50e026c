"""Converts PyTorch modules and torch.export programs to .tflite bytes, with litert-torch."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, shortened
from litebnn.frontends.interface import keyed, set_interface
from litebnn.frontends.tensor_names import Part, part_name, rename_tensors
from litebnn.unique_names import unique_names

# Advice on how to change a module. Each text is for error messages of PyTorch or litert-torch that contain its key.
_ADVICE = {
    "Could not guard on data-dependent": "a branch in it depends on values: choose by torch.where instead",
    "boolean indices must be concrete": "it writes where a condition holds, as y[x < 0] = -1 does: use torch.where",
    "have broadcast-compatible shapes": "an operand is expanded, as in x + bias.expand_as(x): write x + bias instead",
    "'mhlo.convolution' that was explicitly marked illegal": "of a transposed convolution with padding: give it none, "
    "and cut its output, y[:, :, 1:-1, 1:-1] for padding=1 (docs/torch.md)",
    "Lowering not found": "replace that operation",
}

_TRAINING_OPS = ("aten::batch_norm", "aten::dropout", "aten::feature_dropout", "aten::alpha_dropout")


def torch_to_tflite(module: Any, example_inputs: Any, channels_last: bool) -> bytes:
    """The float .tflite file of a module in evaluation mode; the module itself is unchanged.

    `module` is a `torch.nn.Module` in float32 on the CPU. `example_inputs` is a tensor, a list with one tensor for each
    input, or a dictionary of tensors by the names of `forward`'s arguments. The file's inputs get the shapes of these
    tensors. `channels_last` is True to transpose the module's inputs and outputs [n, channels, height, width] to [n,
    height, width, channels] in the file.

    Raises:
        ConversionError: PyTorch or litert-torch is missing or cannot export the module. The same error is raised
            if `module` is not such a module, fails on the inputs, or returns something other than tensors.
    """
    torch = _load("torch")
    if not isinstance(module, torch.nn.Module):
        raise ConversionError(f"expected a torch.nn.Module, got {type(module).__name__}")
    if isinstance(module, torch.jit.ScriptModule):
        raise ConversionError("the module is TorchScript, which cannot be exported: give the module it is made of")
    _check_tensors(torch, module)
    arguments, named = _arguments(torch, example_inputs)
    with _evaluation_mode(module):
        return _export(torch, module, arguments, named, channels_last)


def program_to_tflite(path: Path) -> bytes:
    """The float .tflite file of a program that `torch.export.save` wrote.

    Raises:
        ConversionError: the file cannot be read; the program is in training mode or not in float32; or litert-torch
            cannot export it.
    """
    torch = _load("torch")
    try:
        program = torch.export.load(path)
    except Exception as error:
        raise ConversionError(f"{path} cannot be loaded by PyTorch {torch.__version__}: {_one_line(error)}") from error
    if program.example_inputs is None:
        raise ConversionError(f"{path} holds no example inputs: save it with torch.export.save as it was exported")
    if any(_trains(node) for node in program.graph.nodes):
        raise ConversionError(f"{path} holds a program in training mode: call module.eval() before torch.export.export")
    module = program.module()
    _check_tensors(torch, module)
    arguments, named = program.example_inputs
    return _export(torch, module, list(arguments), named, channels_last=False)


def _trains(node: Any) -> bool:
    """True if a node is a dropout in training mode, or a batch norm that uses the batch's own statistics."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.name not in _TRAINING_OPS:
        return False
    names = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return given.get("train", given.get("training")) is True


def _load(name: str) -> Any:
    # The environment variable TF_CPP_MIN_LOG_LEVEL silences the native libraries. It must be set before the libraries
    # are loaded.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        with redirect_stderr(io.StringIO()):
            return importlib.import_module(name)
    except ImportError as error:
        raise ConversionError(
            f'converting PyTorch models needs PyTorch and litert-torch (pip install "litebnn[torch]"): {error}'
        ) from None


def _check_tensors(torch: Any, module: Any) -> None:
    """Refuses tensors on which litert-torch fails, and tensors of types that the converter would leave unchanged."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.device.type != "cpu":
            raise ConversionError(f'"{name}" of the module is on {tensor.device}: move it to the CPU (module.cpu())')
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise ConversionError(f'"{name}" of the module is {kind}: convert it to float32 first (module.float())')


def _arguments(torch: Any, example_inputs: Any) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of `forward`; each argument is a tensor."""
    if isinstance(example_inputs, Mapping):
        arguments, named = [], {str(name): value for name, value in example_inputs.items()}
    elif isinstance(example_inputs, list | tuple):
        arguments, named = list(example_inputs), {}
    else:
        arguments, named = [example_inputs], {}
    for value in [*arguments, *named.values()]:
        if not isinstance(value, torch.Tensor):
            raise ConversionError(
                f"example_inputs holds {type(value).__name__}, expected tensors: one, or a list or a dictionary with "
                "one for each input of forward"
            )
    if not arguments and not named:
        raise ConversionError("example_inputs is empty, expected a tensor for each input of forward")
    return arguments, named


@contextmanager
def _evaluation_mode(module: Any) -> Iterator[None]:
    training = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in training.items():
            part.training = mode


def _export(torch: Any, module: Any, arguments: list[Any], named: dict[str, Any], channels_last: bool) -> bytes:
    litert_torch = _load("litert_torch")
    try:
        with torch.no_grad():
            results = list(keyed(module(*arguments, **named)))
    except Exception as error:
        raise ConversionError(f"the module fails on example_inputs: {_one_line(error)}") from error
    if not results:
        raise ConversionError("the module gives nothing, expected tensors")
    for _, result in results:
        if not isinstance(result, torch.Tensor):
            raise ConversionError(f"the module gives {type(result).__name__}, expected tensors only")

    class Flat(torch.nn.Module):  # type: ignore[misc]
        """The module as a function from a list of tensors to a list of tensors, in the layout of the file."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module
            self.training = False

        def forward(self, *inputs: Any) -> tuple[Any, ...]:
            given = [_permuted(tensor, (0, 3, 1, 2)) if channels_last else tensor for tensor in inputs]
            by_name = dict(zip(named, given[len(arguments) :], strict=True))
            outputs = [output for _, output in keyed(self.module(*given[: len(arguments)], **by_name))]
            return tuple(_permuted(output, (0, 2, 3, 1)) if channels_last else output for output in outputs)

    inputs = [*arguments, *named.values()]
    examples = tuple(_permuted(tensor, (0, 2, 3, 1)).contiguous() if channels_last else tensor for tensor in inputs)
    flat = Flat()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            tflite = litert_torch.convert(flat, examples).model_content()
    except Exception as error:
        raise ConversionError(f"litert-torch cannot export the module: {_one_line(error)}") from error
    names = unique_names([*_argument_names(module, arguments), *named])
    outputs = unique_names(key or f"output_{index}" for index, (key, _) in enumerate(results))
    find_part = _parts(flat)
    return set_interface(
        rename_tensors(bytes(tflite), lambda graph, tensor: part_name(graph, tensor, find_part)),
        {f"args_{index}": name for index, name in enumerate(names)},
        {f"output_{index}": name for index, name in enumerate(outputs)},
    )


def _parts(flat: Any) -> Callable[[str], Part | None]:
    """Finds modules by the classes on the path to them, and names them by the attributes on this path, such as
    "features.2".

    If one module contains a submodule and another module calls this submodule, the calling module is found.
    """
    paths = {"": _class_path(flat)}
    parts: dict[str, Part] = {}
    for name, module in flat.named_modules(remove_duplicate=False):
        if name:
            parent, _, attribute = name.rpartition(".")
            paths[name] = f"{paths[parent]}/{_class_path(module)}_{attribute}"
        own = name.removeprefix("module").removeprefix(".") or type(flat.module).__name__
        parts[paths[name]] = Part(own, _largest_weight(module))
    any_path = re.compile("|".join(map(re.escape, sorted(parts, key=len, reverse=True))))

    def find_part(name: str) -> Part | None:
        found = any_path.match(name)
        return found and parts[found[0]]

    return find_part


def _largest_weight(module: Any) -> int:
    """The number of elements of a module's largest weight. Weights that a parametrization computes count too."""
    own = (p for name, p in module.named_parameters() if "." not in name or name.startswith("parametrizations."))
    return max((int(parameter.numel()) for parameter in own), default=0)


def _class_path(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"


def _permuted(tensor: Any, order: tuple[int, ...]) -> Any:
    """The tensor with permuted axes if it has four axes, else unchanged."""
    return tensor.permute(*order) if tensor.dim() == len(order) else tensor


def _argument_names(module: Any, arguments: list[Any]) -> list[str]:
    """The names of `forward`'s positional arguments; those of `*name` are name_0, name_1 and so on."""
    names: list[str] = []
    for name, value in inspect.signature(module.forward).bind_partial(*arguments).arguments.items():
        names += [f"{name}_{index}" for index in range(len(value))] if isinstance(value, tuple) else [name]
    return names


def _one_line(error: Exception) -> str:
    """An error as one line: its first line, its location in the model, and advice if there is any."""
    text = str(error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    places = [place for place in re.findall(r'File "([^"]+)", line (\d+)', text) if place[0] != __file__]
    place = f" ({places[-1][0]}, line {places[-1][1]})" if places else ""
    advice = next((f"; {advice}" for words, advice in _ADVICE.items() if words in line), "")
    return f"{shortened(line)}{place}{advice}"
