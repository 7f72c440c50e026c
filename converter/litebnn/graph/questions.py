"""Answers to questions about a graph's tensors, which are kept until an edit changes how the tensors are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from litebnn.graph.graph import Graph, Op, Tensor

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, eq=False)
class Question(Generic[_Answer]):
    """A question that can be asked about any tensor of a graph. The graph keeps the answer until an op upstream is
    edited."""

    # The function that computes the answer for a tensor. It may ask further questions about tensors of the graph, and
    # calls no method of the graph but `producer`.
    answer: Callable[[Graph, Tensor], _Answer]
    # A function that lists the inputs of an op about which `answer` asks the same question. The answers for
    # these inputs are computed first, so that a long chain of ops needs no recursion.
    follows: Callable[[Op], Iterable[Tensor | None]] = lambda op: ()

    def __call__(self, graph: Graph, tensor: Tensor) -> _Answer:
        return graph.ask(self, tensor)


_Key: TypeAlias = "tuple[Question[Any], Tensor]"


class Answers:
    """The answers to questions about the tensors of one graph. Each answer remembers the producers and the other
    answers from which it was computed.
    """

    def __init__(self) -> None:
        self._known: dict[_Key, Any] = {}
        self._dependent: dict[Tensor | _Key, set[_Key]] = {}
        self._reading: list[set[Tensor | _Key]] = []  # what each answer that is being computed has read

    def ask(self, graph: Graph, question: Question[_Answer], tensor: Tensor) -> _Answer:
        waiting = [tensor]
        opened: set[Tensor] = set()
        while waiting:
            one = waiting[-1]
            op = None if one in opened or (question, one) in self._known else graph.producer(one)
            followed = () if op is None else question.follows(op)
            missing = [t for t in followed if t is not None and (question, t) not in self._known and t not in opened]
            opened.add(one)
            if not missing:
                self._answer(graph, question, waiting.pop())
            waiting.extend(missing)
        if self._reading:
            self._reading[-1].add((question, tensor))
        answer: _Answer = self._known[question, tensor]
        return answer

    def _answer(self, graph: Graph, question: Question[Any], tensor: Tensor) -> None:
        key = (question, tensor)
        if key in self._known:
            return
        self._reading.append(set())
        try:
            self._known[key] = question.answer(graph, tensor)
        finally:
            read = self._reading.pop()
        for one in read:
            self._dependent.setdefault(one, set()).add(key)

    def reads(self, tensor: Tensor) -> None:
        """Records that the answer to the question that is being answered now depends on the producer of `tensor`."""
        if self._reading:
            self._reading[-1].add(tensor)

    def drop(self, tensors: Iterable[Tensor]) -> None:
        """Drops the stored answers to questions about the graph that depend on the producers of these tensors."""
        waiting: list[Tensor | _Key] = [tensor for tensor in tensors if tensor in self._dependent]
        while waiting:
            for key in self._dependent.pop(waiting.pop(), ()):
                if key in self._known:
                    del self._known[key]
                    waiting.append(key)
