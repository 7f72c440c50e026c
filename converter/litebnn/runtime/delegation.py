"""What the delegate does with a model: the nodes that it claims and fuses, and those that it leaves to the runtime. The
library says it of a model that a runtime has loaded."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from litebnn.errors import ConversionError
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_runtime
from litebnn.runtime.predictor import FAILURES, reason


@dataclass(frozen=True)
class Step:
    """A node that the delegate runs, or several that it runs as one."""

    # The number of its partition, from 0.
    partition: int
    # The name of the library's op, such as "LceBconv2d with ADD".
    op: str
    # The indices of the nodes in the subgraph, ascending.
    nodes: tuple[int, ...]
    # The node into which the others are fused.
    main: int


@dataclass(frozen=True)
class Delegation:
    """What the delegate does with the nodes of a model's main subgraph, by their indices."""

    steps: tuple[Step, ...]
    # The nodes that the delegate leaves to the runtime, each with the reason.
    left: Mapping[int, str]

    @cached_property
    def step_of(self) -> Mapping[int, Step]:
        """The step that runs each claimed node."""
        return {node: step for step in self.steps for node in step.nodes}


def describe_delegate(delegate: Any) -> dict[str, Any]:
    """What a delegate of `load_delegate(describe=True)` does with the models of its interpreters.

    Returns:
        The value of the JSON that `litebnn_describe` returns, as documented in `litebnn.h`.

    Raises:
        ValueError: the delegate was loaded without `describe=True`, or its library is too old.

    Example:
        >>> from ai_edge_litert.interpreter import Interpreter
        >>> delegate = litebnn.load_delegate(describe=True)
        >>> interpreter = Interpreter("model.tflite", experimental_delegates=[delegate])
        >>> [len(graph["partitions"]) for graph in describe_delegate(delegate)["graphs"]]
        [2]
    """
    try:
        describe = delegate._library.litebnn_describe
    except AttributeError:
        raise ValueError("the delegate's library is older than litebnn_describe: install this version's") from None
    describe.argtypes, describe.restype = [ctypes.c_void_p], ctypes.c_char_p
    text = describe(delegate._get_native_delegate_pointer())
    if text is None:
        raise ValueError("the delegate was loaded without describe=True")
    found: dict[str, Any] = json.loads(text)
    return found


def delegation_of(model: bytes) -> Delegation:
    """Asks the library what its delegate does with a model, which this process loads but does not run.

    Args:
        model: the bytes of a `.tflite` file.

    Raises:
        ConversionError: nobody can say, as there is no runtime or no library, or the runtime refuses the model.

    Example:
        >>> delegation_of(Path("model.tflite").read_bytes()).steps[0].op
        'LceQuantize'
    """
    return parse_delegation(describe_model(model))


def describe_model(model: bytes) -> Any:
    """What the delegate does with a model's main subgraph, for `parse_delegation`; JSON can hold it. Arguments and
    errors are those of `delegation_of`."""
    try:
        delegate = load_delegate(describe=True)
        find_runtime().Interpreter(model_content=model, experimental_delegates=[delegate])
        return describe_delegate(delegate)["graphs"][0]
    except (*FAILURES, ImportError, OSError) as error:
        raise ConversionError(reason(error)) from error


def parse_delegation(graph: Mapping[str, Any]) -> Delegation:
    """The result of `describe_model` as a Delegation."""
    steps = (_step(i, step) for i, partition in enumerate(graph["partitions"]) for step in partition["steps"])
    return Delegation(tuple(steps), {node["index"]: node["reason"] for node in graph["left"]})


def _step(partition: int, step: Mapping[str, Any]) -> Step:
    # A step is called after the op of its main node; fusing may leave out that op.
    named = sorted(node["index"] for node in step["nodes"] if step["op"].startswith(node["op"]))
    nodes = tuple(sorted(node["index"] for node in step["nodes"]))
    return Step(partition, step["op"], nodes, [*nodes, *named][-1])
