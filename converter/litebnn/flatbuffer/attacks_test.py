"""Tests attacks on files: every field with an index or a count gets invalid numbers, or numbers that refer to other
objects.

The converter must refuse each attacked file, or convert it to a file that runs. If `check` accepts a file, the file
must never crash a runtime.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.errors import ConversionError, Defect
from litebnn.flatbuffer import read_strictly
from litebnn.flatbuffer.round_trip_test import buffer, code, operator, pack, sparsity, subgraph, tensor, unpacked
from litebnn.flatbuffer.schema import camel_case, schema
from litebnn.runtime.isolated import run_apart
from litebnn.safety import check_model, check_outputs
from litebnn.safety.fields import FIELDS
from tests.needs import need
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import with_blocks

pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.filterwarnings("ignore:no binary layer")]
LOWEST, HIGHEST = -(2**31), 2**31 - 1
PAST = 50  # distance beyond the end, for a number as in a larger file


def blockwise() -> Any:
    """A model with a binary layer and a float layer, both with blockwise weights."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.dense(model.sign(model.input(1, 64)), np.sign(sign_weights(rng, 64, 64)), np.full(64, 0.5))
    return unpacked(with_blocks(model.finish(model.dense(x, rng.standard_normal((8, 64)))), "INT4", 32))


def sparse() -> Any:
    """A model with a dense layer of sparse weights, and a signature."""
    model = schema.ModelT()
    model.version = 3
    model.operatorCodes = [code("FULLY_CONNECTED")]
    weights = np.array([1, 2], np.float32).tobytes()
    model.buffers = [buffer(None), buffer(weights), buffer(b"1.2.3")]
    tensors = [
        tensor("x", "FLOAT32", [1, 4]),
        tensor("weights", "FLOAT32", [4, 4], 1, sparsity=sparsity()),
        tensor("y", "FLOAT32", [1, 4]),
    ]
    options = schema.FullyConnectedOptionsT()
    model.subgraphs = [subgraph(b"main", tensors, [0], [2], [operator(0, [0, 1, -1], [2], options)])]
    info = schema.MetadataT()
    info.name, info.buffer = b"min_runtime_version", 2
    model.metadata, model.metadataBuffer = [info], np.array([2], np.int32)
    return signed(model)


def signed(model: Any) -> Any:
    """Adds a signature of the first subgraph to the model."""
    graph, signature = model.subgraphs[0], schema.SignatureDefT()
    signature.signatureKey, signature.inputs, signature.outputs = b"serving_default", [], []
    for role in ("inputs", "outputs"):
        for index in getattr(graph, role):
            named = schema.TensorMapT()
            named.name, named.tensorIndex = graph.tensors[index].name, int(index)
            getattr(signature, role).append(named)
    model.signatureDefs = [signature]
    return model


def branches() -> Any:
    """A model with an IF and a WHILE, which run four other subgraphs."""
    model = schema.ModelT()
    model.version = 3
    model.operatorCodes = [code(name) for name in ("IF", "WHILE", "NEG", "LESS", "ABS")]
    model.buffers = [buffer(None), buffer(np.float32(9).tobytes())]
    branch, loop = schema.IfOptionsT(), schema.WhileOptionsT()
    branch.thenSubgraphIndex, branch.elseSubgraphIndex = 1, 2
    loop.condSubgraphIndex, loop.bodySubgraphIndex = 3, 2
    names = ("x", "y", "z")
    main = [tensor("condition", "BOOL", [1]), *(tensor(name, "FLOAT32", [1]) for name in names)]
    inner = [[tensor("a", "FLOAT32", [1]), tensor("b", "FLOAT32", [1])] for _ in range(2)]
    condition = [tensor("a", "FLOAT32", [1]), tensor("limit", "FLOAT32", [1], 1), tensor("b", "BOOL", [1])]
    less = operator(3, [1, 0], [2])
    model.subgraphs = [
        subgraph(b"main", main, [0, 1], [3], [operator(0, [0, 1], [2], branch), operator(1, [2], [3], loop)]),
        subgraph(b"negative", inner[0], [0], [1], [operator(2, [0], [1])]),
        subgraph(b"positive", inner[1], [0], [1], [operator(4, [0], [1])]),
        subgraph(b"condition", condition, [0], [2], [less]),
    ]
    return signed(model)


def windows() -> Any:
    """A model with STABLEHLO_GATHER, UNPACK and SPLIT, whose options name axes and count outputs."""
    model = schema.ModelT()
    model.version = 3
    model.operatorCodes = [code(name) for name in ("STABLEHLO_GATHER", "UNPACK", "SPLIT")]
    places = np.array([[0, 0], [1, 0]], np.int64).tobytes()
    model.buffers = [buffer(None), buffer(places), buffer(np.int32(0).tobytes())]
    gather, unpack, split = schema.StablehloGatherOptionsT(), schema.UnpackOptionsT(), schema.SplitOptionsT()
    for key, axes in (("offsetDims", [1, 2]), ("collapsedSliceDims", [0]), ("startIndexMap", [1, 0])):
        setattr(gather, key, np.array(axes, np.int64))
    gather.sliceSizes, gather.indexVectorDim = np.array([1, 2, 2], np.int64), 1
    unpack.num, unpack.axis, split.numSplits = 2, 0, 2
    tensors = [
        tensor("x", "FLOAT32", [3, 4, 2]),
        tensor("places", "INT64", [2, 2], 1),
        tensor("axis", "INT32", [], 2),
        tensor("windows", "FLOAT32", [2, 2, 2]),
        *(tensor(f"part{i}", "FLOAT32", [2, 2]) for i in range(2)),
        *(tensor(f"half{i}", "FLOAT32", [1, 2]) for i in range(2)),
    ]
    first = operator(
        0, [0, 1], [3], builtinOptions2=gather, builtinOptions2Type=schema.BuiltinOptions2.StablehloGatherOptions
    )
    ops = [first, operator(1, [3], [4, 5], unpack), operator(2, [2, 4], [6, 7], split)]
    model.subgraphs = [subgraph(b"main", tensors, [0], [5, 6, 7], ops)]
    return signed(model)


def tables(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yields all objects of the schema in a model, each with its path."""
    if not hasattr(item, "__dict__"):
        return
    yield path, item
    for key, value in vars(item).items():
        listed = value if isinstance(value, list) else [value]
        for place, each in enumerate(listed):
            yield from tables(each, (*path, (key, place if isinstance(value, list) else None)))


def at(model: Any, path: tuple[Any, ...]) -> Any:
    for key, place in path:
        model = getattr(model, key) if place is None else getattr(model, key)[place]
    return model


def attacks(model: Any) -> Iterator[bytes]:
    """Changes one number at a time in the model's fields with indices or counts, and yields the file of each changed
    model.
    """
    sizes = {len(model.buffers), len(model.subgraphs), *(len(graph.tensors) for graph in model.subgraphs)}
    values = [LOWEST, HIGHEST, -1, 0, 1, 2, *sizes, *(size + PAST for size in sizes)]
    for path, item in tables(model):
        for name, field in FIELDS[type(item).__name__.removesuffix("T")].items():
            key = camel_case(name)
            if not field.holds or not hasattr(item, key):
                continue
            for number in changed_numbers(getattr(item, key), values):
                changed = copy.deepcopy(model)
                setattr(at(changed, path), key, number)
                try:
                    yield pack(changed)
                except (TypeError, OverflowError):  # the value does not fit into the field
                    continue


def changed_numbers(old: Any, values: list[int]) -> Iterator[Any]:
    """Yields changed values of a field. The value is a number, or a list of which the first or the last number is
    changed.
    """
    if isinstance(old, int) and not isinstance(old, bool):
        yield from values
    elif isinstance(old, np.ndarray) and old.size and old.dtype.kind in "iu":
        limits = np.iinfo(old.dtype)
        for place in sorted({0, old.size - 1}):
            for value in values:
                if limits.min <= value <= limits.max:
                    new = old.copy()
                    new[place] = value
                    yield new


def run_all(contents: list[bytes]) -> int:
    """Runs each model in Interpreter and in CompiledModel, which may refuse it. Returns the number of models that
    one of them accepted.
    """
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    environment = litebnn.environment()

    def interpret(content: bytes, resolver: Any) -> None:
        delegates = [litebnn.load_delegate()]
        interpreter = Interpreter(
            model_content=content, experimental_op_resolver_type=resolver, experimental_delegates=delegates
        )
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        interpreter.invoke()

    def compile_and_run(content: bytes) -> None:
        model = CompiledModel.from_buffer(content, environment=environment)
        for signature in range(len(model.get_signature_list())):
            inputs, outputs = model.create_input_buffers(signature), model.create_output_buffers(signature)
            for each in inputs:  # a new buffer holds any values, with which a loop may never end
                details = each.get_tensor_details()
                each.write(np.ones(details["shape"], details["dtype"]).reshape(-1).view(np.int8))
            model.run_by_index(signature, inputs, outputs)

    ways: list[Callable[[bytes], None]] = [
        lambda content: interpret(content, OpResolverType.AUTO),
        lambda content: interpret(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
        compile_and_run,
    ]
    taken = 0
    for content in contents:
        for way in ways:
            try:
                way(content)
                taken += 1
            except (RuntimeError, ValueError, TypeError, LookupError, OverflowError, MemoryError):
                pass
    return taken


def is_sound(content: bytes) -> bool:
    try:
        model = read_strictly(content)
        check_model(model)
        for graph in model.graphs:
            check_outputs(graph)
    except Defect:
        raise
    except ConversionError:
        return False
    return True


def converted(content: bytes) -> list[bytes]:
    try:
        return [litebnn.convert_tflite(content)]
    except Defect:
        raise
    except ConversionError:
        return []


SEEDS = pytest.mark.parametrize(
    "seed",
    [sparse, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (blockwise, branches, windows))],
    ids=lambda seed: seed.__name__,
)


@SEEDS
def test_no_number_of_any_field_ends_a_process(seed: Callable[[], Any]) -> None:
    assert_survives(seed, 12)


@pytest.mark.long
@SEEDS
def test_no_number_at_all_ends_a_process(seed: Callable[[], Any]) -> None:
    assert_survives(seed, 1)


def assert_survives(seed: Callable[[], Any], step: int) -> None:
    """Tries the attacks on a model, each with one changed number in the file: all of them, or every `step`-th. No
    attack may end the process.
    """
    need("compiled-model")
    sound = pack(seed())
    assert is_sound(sound)
    cases = list(dict.fromkeys(attacks(seed())))[::step]
    assert len(cases) > 10
    run = dict.fromkeys([sound, *filter(is_sound, cases), *(result for case in cases for result in converted(case))])
    taken = run_apart("the attack", run_all, list(run), seconds=900, memory=8 << 30)
    assert taken >= 3
