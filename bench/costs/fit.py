"""Fits the cycles of each kind of work to measured times of networks, by least squares of relative errors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from litebnn.flatbuffer import read_model
from litebnn.report.costs import Costs, row_for
from litebnn.report.inspection import DelegatedWork
from litebnn.report.workload import Workload, workload_of
from litebnn.runtime.delegation import delegation_of

Cycles = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Network:
    """A measured network: the work of its ops, and the cycles that they take together."""

    name: str
    works: tuple[Workload, ...]
    cycles: float


def workloads_of(model: bytes, row: Costs) -> tuple[tuple[Workload, ...], tuple[Workload, ...]]:
    """A model's work in two parts, for the ISA of a `row` of the cost table. The ISA computes the ops of the first part
    itself, and delegates those of the second part to another ISA."""
    graph = read_model(model).graphs[0]
    delegated = DelegatedWork(graph, delegation_of(model))
    own: list[Workload] = []
    others: list[Workload] = []
    for op in graph.ops:
        if op in delegated.free:
            continue
        chosen = row_for(op, row)
        work = workload_of(op, delegated.delegated, op in delegated.additions.values(), chosen.tile)
        assert work is not None, op.name
        (own if chosen is row else others).append(work)
    return tuple(own), tuple(others)


def fit(networks: Sequence[Network], free: Collection[str] = ()) -> Cycles:
    """Fits a cost in cycles, 0 or more, to each kind of work of each kind of op. The kinds in `free` get the cost 0."""
    kinds = {(work.kind, name) for net in networks for work in net.works for name in work.amounts}
    terms = sorted(term for term in kinds if term[1] not in free)
    column = {term: index for index, term in enumerate(terms)}
    matrix = np.zeros((len(networks), len(terms)))
    for row, net in enumerate(networks):
        for work in net.works:
            for name, amount in work.amounts.items():
                if name not in free:
                    matrix[row, column[work.kind, name]] += amount / net.cycles
    scales = np.maximum(matrix.max(axis=0), 1e-300)
    found, _ = nnls(matrix / scales, np.ones(len(networks)), maxiter=100 * len(terms))
    cycles: Cycles = {}
    for (kind, name), value in zip(terms, found / scales, strict=True):
        cycles.setdefault(kind, {})
        if value > 0:
            cycles[kind][name] = float(f"{value:.4g}")
    return cycles
