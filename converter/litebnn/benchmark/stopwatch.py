"""Times each node of a graph in any TensorFlow Lite runtime for Python. The runtimes' own profilers work only in
C++.

The stopwatch is a delegate that claims no node. When the graph is ready, it wraps the function that runs each node. The
structures are those of tensorflow/lite/core/c/common.h, whose first members have never changed.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

_OK = 0
# Without this flag of a delegate, a runtime refuses graphs with shapes that are known only at run time.
_ALLOW_DYNAMIC_TENSORS = 1
_BUILTIN_DELEGATE = 51
_RUNS_OF_NOTHING = 2000


class _IntArray(Structure):
    _fields_ = (("size", c_int),)

    def values(self) -> list[int]:
        return list((c_int * self.size).from_address(ctypes.addressof(self) + ctypes.sizeof(c_int)))


class _DelegateParams(Structure):
    _fields_ = (("delegate", c_void_p), ("nodes_to_replace", POINTER(_IntArray)))


class _Node(Structure):
    _fields_ = (
        ("inputs", c_void_p),
        ("outputs", c_void_p),
        ("intermediates", c_void_p),
        ("temporaries", c_void_p),
        ("user_data", c_void_p),
        ("builtin_data", c_void_p),
    )


class _Registration(Structure):
    _fields_ = (
        ("init", c_void_p),
        ("free", c_void_p),
        ("prepare", c_void_p),
        ("invoke", c_void_p),
        ("profiling_string", c_void_p),
        ("builtin_code", c_int32),
        ("custom_name", c_char_p),
    )


_Invoke = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_Prepare = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_GetExecutionPlan = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(POINTER(_IntArray)))
_GetNodeAndRegistration = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_int, POINTER(POINTER(_Node)), POINTER(POINTER(_Registration))
)


class _Context(Structure):
    _fields_ = (
        ("tensors_size", c_size_t),
        ("GetExecutionPlan", c_void_p),
        ("tensors", c_void_p),
        ("impl_", c_void_p),
        ("ResizeTensor", c_void_p),
        ("ReportError", c_void_p),
        ("AddTensors", c_void_p),
        ("GetNodeAndRegistration", c_void_p),
    )


class _Delegate(Structure):
    _fields_ = (
        ("data_", c_void_p),
        ("Prepare", _Prepare),
        ("CopyFromBufferHandle", c_void_p),
        ("CopyToBufferHandle", c_void_p),
        ("FreeBufferHandle", c_void_p),
        ("flags", c_int64),
        # Newer runtimes have more members at the end of their TfLiteDelegate, and read them. The zeros here stand for
        # these members.
        ("zeroed_room", c_void_p * 16),
    )


class WatchedNode(NamedTuple):
    """A node of a model's graph that the runtime runs."""

    # Indices of the ops that the node computes, in the first subgraph; several if a delegate runs them as one node.
    ops: tuple[int, ...]
    kind: str  # delegate's name for its node; "" if the runtime itself runs the node


class Stopwatch:
    """Measures the nodes of one interpreter. The stopwatch must not outlive the interpreter.

    Example:
        >>> from ai_edge_litert.interpreter import Interpreter
        >>> stopwatch = Stopwatch()
        >>> interpreter = Interpreter("model.tflite", experimental_delegates=[litebnn.load_delegate(), stopwatch])
        >>> interpreter.allocate_tensors()
        >>> stopwatch.start()
        >>> interpreter.invoke()
        >>> dict(zip(stopwatch.nodes, stopwatch.seconds()))
        {...WatchedNode(ops=(1, 2, 3, 4, 5), kind='LitebnnDelegate'): ..., WatchedNode(ops=(6,), kind=''): ...}
    """

    def __init__(self) -> None:
        self._delegate = _Delegate(flags=_ALLOW_DYNAMIC_TENSORS, Prepare=_Prepare(self._prepare))
        self._context = 0
        self._functions: tuple[Any, Any] | None = None
        self._kept: list[Any] = []
        self._nanoseconds: list[int] = []
        self._cost, self._cost_outside = 0, 0
        self.nodes: list[WatchedNode] = []

    def _get_native_delegate_pointer(self) -> int:
        """The address of the delegate's C structure. Interpreters call this method by its name."""
        return ctypes.addressof(self._delegate)

    def _prepare(self, context: int, delegate: int) -> int:
        if self._functions is not None:
            # Only the first graph is timed. The other graphs run as parts of the first graph's nodes.
            return _OK
        # The stopwatch keeps the two functions that list the graph's nodes, and calls them in `start`. The list is not
        # final yet, because XNNPACK claims its nodes after all other delegates. When `_prepare` has returned, the
        # runtime's context has functions that only fail in their place, but the kept functions still work.
        found = _Context.from_address(context)
        self._context = context
        self._functions = (
            _GetExecutionPlan(found.GetExecutionPlan),
            _GetNodeAndRegistration(found.GetNodeAndRegistration),
        )
        return _OK

    def start(self) -> None:
        """Starts timing the nodes; the interpreter must have allocated its tensors.

        Raises:
            RuntimeError: the runtime does not expose its nodes.
        """
        if self._functions is None:
            raise RuntimeError("the stopwatch has been given to no interpreter")
        get_plan, get_node = self._functions
        plan = POINTER(_IntArray)()
        if get_plan(self._context, byref(plan)) != _OK:
            raise RuntimeError("the runtime does not tell the order of its nodes")
        for index in plan.contents.values():
            node, registration = POINTER(_Node)(), POINTER(_Registration)()
            if get_node(self._context, index, byref(node), byref(registration)) != _OK:
                raise RuntimeError(f"the runtime does not give its node {index}")
            if registration.contents.invoke:
                self.nodes.append(_described(index, node.contents, registration.contents))
                registration.contents.invoke = self._watched(registration.contents.invoke)
        self._cost, self._cost_outside = self._costs_of_watching()

    def _watched(self, invoke: int) -> int:
        """Makes a C function that runs a node by calling `invoke`, and records the time. Returns the function's
        address.
        """
        call, times, place, clock = _Invoke(invoke), self._nanoseconds, len(self._nanoseconds), time.perf_counter_ns
        times.append(0)

        def watched(context: int, node: int) -> int:
            start = clock()
            status: int = call(context, node)
            times[place] = clock() - start
            return status

        function = _Invoke(watched)
        self._kept += [call, function]
        return int(ctypes.cast(function, c_void_p).value or 0)

    def _costs_of_watching(self) -> tuple[int, int]:
        """The overhead of timing, in nanoseconds: the part inside a node's measured time, and the part outside it."""
        nothing = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(("abs", ctypes.CDLL(None)))
        # An outer timing function times the whole call of an inner timing function, and thereby measures the inner
        # one's total overhead.
        watched = _Invoke(self._watched(self._watched(int(ctypes.cast(nothing, c_void_p).value or 0))))
        costs = []
        for _ in range(_RUNS_OF_NOTHING):
            watched(None, None)
            costs.append(tuple(self._nanoseconds[-2:]))
        del self._nanoseconds[-2:]
        once, twice = (int(statistics.median(column)) for column in zip(*costs, strict=True))
        return once, max(0, twice - 2 * once)

    def seconds(self) -> list[float]:
        """The time of each node in the last run, in the order of `nodes`, without the overhead of timing."""
        return [max(0, time - self._cost) / 1e9 for time in self._nanoseconds]

    def seconds_between(self, run: float) -> float:
        """The time of the last run outside its nodes, without the overhead of timing.

        Args:
            run: the duration of the whole run in seconds.
        """
        measured = sum(self._nanoseconds) + len(self._nanoseconds) * self._cost_outside
        return max(0.0, run - measured / 1e9)


def _described(index: int, node: _Node, registration: _Registration) -> WatchedNode:
    if registration.builtin_code != _BUILTIN_DELEGATE or not node.builtin_data:
        return WatchedNode((index,), "")
    params = _DelegateParams.from_address(node.builtin_data)
    name = registration.custom_name or b""
    return WatchedNode(tuple(params.nodes_to_replace.contents.values()), name.decode("utf-8", "replace"))


# The share of all runs that is averaged: the middle ones, when the runs are sorted by time. Their mean is close to the
# median, and excludes runs that another process slowed down.
_MIDDLE = 0.2


def middle_means(runs: Sequence[Sequence[float]]) -> list[float]:
    """Averages the time of each node over the middle share of the runs. The function sorts the runs by their total
    times.

    Args:
        runs: for each run, the time of each node.

    Example:
        >>> middle_means([[1.0, 1.0], [1.0, 2.0], [1.0, 2.0], [9.0, 9.0]])
        [1.0, 2.0]
    """
    ordered = sorted(runs, key=sum)
    left_out = int(len(ordered) * (1 - _MIDDLE) / 2)
    return [statistics.fmean(column) for column in zip(*ordered[left_out : len(ordered) - left_out], strict=True)]


def times_of_ops(
    nodes: Mapping[WatchedNode, float], alone: Mapping[WatchedNode, float]
) -> dict[tuple[int, ...], float]:
    """Divides the time of a node among its ops, in proportion to the time that each op takes in a node of its own.

    `nodes` has the time of each node in the fastest configuration. `alone` has the time of each op in a node of its
    own; it is empty if the runtime cannot run the ops separately.

    Returns:
        The time by op. Ops that cannot run separately share one entry.

    Example:
        >>> nodes = {WatchedNode((0, 1), "LitebnnDelegate"): 8.0, WatchedNode((2,), ""): 1.0}
        >>> times_of_ops(nodes, {WatchedNode((0,), "LitebnnDelegate"): 9.0, WatchedNode((1,), "LitebnnDelegate"): 3.0})
        {(0,): 6.0, (1,): 2.0, (2,): 1.0}
    """
    times: dict[tuple[int, ...], float] = {}
    for node, seconds in nodes.items():
        parts = {one.ops: time for one, time in alone.items() if set(one.ops) <= set(node.ops)}
        total = sum(parts.values())
        if total and {op for ops in parts for op in ops} == set(node.ops):
            times |= {ops: seconds * time / total for ops, time in sorted(parts.items())}
        else:
            times[node.ops] = seconds
    return times
