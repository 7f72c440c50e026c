"""Converts PyTorch modules and torch.export programs to .tflite bytes, with litert-torch."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, shortened, warn
from litebnn.frontends.interface import keyed, set_interface
from litebnn.frontends.tensor_names import Part, part_name, rename_tensors
from litebnn.frontends.unknown_batch import with_unknown_batch
from litebnn.frontends.user_lines import Place, failing_line
from litebnn.graph import unique_names

# Advice on how to change a module. Each text is for error messages of PyTorch or litert-torch that contain its key.
_ADVICE = {
    "Could not guard on data-dependent": "a branch in it depends on values: choose by torch.where instead",
    "boolean indices must be concrete": "it writes where a condition holds, as y[x < 0] = -1 does: use torch.where",
    "have broadcast-compatible shapes": "an operand is expanded, as in x + bias.expand_as(x): write x + bias instead",
    "'mhlo.convolution' that was explicitly marked illegal": "of a transposed convolution with padding: give it none, "
    "and cut its output, y[:, :, 1:-1, 1:-1] for padding=1 (docs/torch.md)",
    "Lowering not found": "replace that operation",
    "fake tensor in the exported program constant's list": "forward keeps tensors outside of the module's own: "
    "make them parameters or buffers",
}

# Words in errors about numbers that are unknown before the model runs.
_OF_VALUES = ("data-dependent", "Abstract tracer value", "numpy()", "SymFloat", "SymInt")

# Begins the names that tensors get by the path of their module.
_PATH = "path:"

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
    """The float .tflite file of a program that `torch.export.save` wrote. A batch size that is dynamic in the program
    is unknown in the file.

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
    graph_module = program.module()
    _check_tensors(torch, graph_module)
    arguments, named = program.example_inputs
    names = unique_names([*_argument_names(graph_module, arguments), *named])
    inputs = dict(zip(names, [*arguments, *named.values()], strict=True))
    module = _interpreted(torch, graph_module)
    exported = _export(torch, module, [], inputs, channels_last=False)
    nodes = {node.name: node for node in program.graph.nodes}
    shapes = [nodes[name].meta["val"].shape for name in program.graph_signature.user_inputs]
    dynamic = [name for name, shape in zip(names, shapes, strict=True) if shape and not isinstance(shape[0], int)]
    sizes = {len(inputs[name]) for name in dynamic}
    if not sizes:
        return exported
    longer, size = inputs | {name: torch.cat([inputs[name], inputs[name][:1]]) for name in dynamic}, max(sizes)
    try:
        second = _export(torch, module, [], longer, channels_last=False)
        found = with_unknown_batch(exported, second, (size, size + 1)) if len(sizes) == 1 else None
    except ConversionError:
        found = None  # the program takes no larger batch
    if found is None:
        warn(f"the batch size of {path} stays {size}: more than shapes depends on it", __name__)
    return found or exported


def _interpreted(torch: Any, graph_module: Any) -> Any:
    """A module that runs a program op by op, so that the ops keep the paths and lines of the module that was exported.
    Its inputs have names, in the program's order.
    """

    class Program(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.program = graph_module

        def forward(self, **inputs: Any) -> Any:
            with torch.fx.traceback.preserve_node_meta():
                return torch.fx.Interpreter(self.program).run(*inputs.values())

    return Program()


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
    forward = importlib.import_module("litebnn.frontends.torch_forward")
    try:
        record = forward.record_forward(module, arguments, named)
    except ConversionError:
        raise
    except Exception as error:
        raise ConversionError(f"the module fails on example_inputs: {_one_line(error)}") from error
    results = list(keyed(record.results))
    if not results:
        raise ConversionError("the module gives nothing, expected tensors")
    for _, result in results:
        if not isinstance(result, torch.Tensor):
            raise ConversionError(f"the module gives {type(result).__name__}, expected tensors only")

    class Flat(torch.nn.Module):  # type: ignore[misc]
        """The module as a function from a list of tensors to a list of tensors, in the layout of the file."""

        def __init__(self) -> None:
            super().__init__()
            self.exported = module
            self.training = False

        def forward(self, *inputs: Any) -> tuple[Any, ...]:
            given = [_permuted(tensor, (0, 3, 1, 2)) if channels_last else tensor for tensor in inputs]
            by_name = dict(zip(named, given[len(arguments) :], strict=True))
            with nullcontext() if record.is_followed else forward.Replay(record, given) as replay:
                result = self.exported(*given[: len(arguments)], **by_name)
            outputs = [output for _, output in keyed(replay.current(result) if replay else result)]
            return tuple(_permuted(output, (0, 2, 3, 1)) if channels_last else output for output in outputs)

    inputs = [*arguments, *named.values()]
    examples = tuple(_permuted(tensor, (0, 2, 3, 1)).contiguous() if channels_last else tensor for tensor in inputs)
    flat = Flat()
    try:
        with _silenced(), _named_by_path(), forward.attributes_kept(module):
            tflite = litert_torch.convert(flat, examples).model_content()
    except Exception as error:
        read = record.dependent_read
        reason = (
            _reason_of_read(read) if read and any(words in str(error) for words in _OF_VALUES) else _one_line(error)
        )
        raise ConversionError(f"litert-torch cannot export the module: {reason}") from error
    names = unique_names([*_argument_names(module, arguments), *named])
    outputs = unique_names(key or f"output_{index}" for index, (key, _) in enumerate(results))
    find_part = _parts(module)
    return set_interface(
        rename_tensors(bytes(tflite), lambda graph, tensor: part_name(graph, tensor, find_part)),
        {f"args_{index}": name for index, name in enumerate(names)},
        {f"output_{index}": name for index, name in enumerate(outputs)},
    )


@contextmanager
def _silenced() -> Iterator[None]:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


@contextmanager
def _named_by_path() -> Iterator[None]:
    """Makes litert-torch name tensors by the path of the module that computes them, such as "exported.blocks.0".

    By itself, litert-torch names only the modules on the way that are called, so all blocks in lists get equal names.
    """
    debuginfo: Any = importlib.import_module("litert_torch.backend.debuginfo")
    by_classes = debuginfo.build_mlir_debuginfo

    def by_path(node: Any) -> str | None:
        stack = list(node.meta.get("nn_module_stack", {}).values())
        return f"{_PATH}{stack[-1][0]};" if stack else None

    debuginfo.build_mlir_debuginfo = by_path
    try:
        yield
    finally:
        debuginfo.build_mlir_debuginfo = by_classes


def _parts(module: Any) -> Callable[[str], Part | None]:
    """Finds parts of a module by their path, and names them as `named_modules()` does, such as "features.2"."""
    weights = {name: _largest_weight(part) for name, part in module.named_modules(remove_duplicate=False)}

    def find_part(name: str) -> Part | None:
        # PyTorch numbers the calls of a module after the first: "conv", "conv@1".
        found = re.match(rf"{_PATH}(?:exported\b\.?|program\b\.?)*([^@]*)", name)
        return found and Part(found[1] or type(module).__name__, weights.get(found[1], 0))

    return find_part


def _largest_weight(module: Any) -> int:
    """The number of elements of a module's largest weight. Weights that a parametrization computes count too."""
    own = (p for name, p in module.named_parameters() if "." not in name or name.startswith("parametrizations."))
    return max((int(parameter.numel()) for parameter in own), default=0)


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
    """An error as one line: its first line, the line of the user's module, and advice if there is any."""
    text = str(error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    places = [Place(file, int(number)) for file, number in re.findall(r'File "([^"]+)", line (\d+)', text)]
    place = failing_line(error.__traceback__) or next((p for p in reversed(places) if p.file != __file__), None)
    advice = next((f"; {advice}" for words, advice in _ADVICE.items() if words in line), "")
    return f"{shortened(line)}{f' ({place})' if place else ''}{advice}"


def _reason_of_read(read: Any) -> str:
    """The reason why a module cannot be exported that reads numbers which depend on its inputs."""
    call = f".{read.function}()" if read.function.strip("_") == read.function else f"{read.function.strip('_')}()"
    what = "branches on a data-dependent value" if call == "bool()" else f"reads a data-dependent value by {call}"
    place = f" ({read.place})" if read.place else ""
    return f"forward {what}{place}: keep it a tensor, and choose by torch.where instead of a branch"
