"""Counts the accuracy of models. The counts do not depend on the order of the batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from litebnn.evaluate.scoring import Result


@dataclass
class ModelCounts:
    """Counts of right and wrong classes for one model of an evaluation."""

    # The numbers of samples whose label is the model's best class, and whose label is among its best five classes.
    top_1: int = 0
    top_5: int = 0
    seconds: float = 0.0  # that the model itself ran, summed over all processes
    confusion: Counter[tuple[int, int]] = field(default_factory=Counter)  # samples by (label, best class)


@dataclass
class Counts:
    """Counts of right and wrong classes for all models of an evaluation."""

    # The counts of right classes, and the run time, of each model. The models have the order in which they were given.
    models: list[ModelCounts]
    samples: int = 0  # on which the models ran
    labelled: int = 0  # samples among them that have a label
    # For each pair (i, j) of models with i < j, the number of samples on which both models agree about the best class.
    agreements: Counter[tuple[int, int]] = field(default_factory=Counter)
    # The samples that could not be read, by the batch's number: the name of each sample, and the reason.
    left_out: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, index: int, result: Result) -> None:
        """Adds a batch's result to the counts."""
        best = [[classes[0] for classes in model] for model in result["top"]]
        self.samples += len(best[0])
        self.labelled += 0 if result["labels"] is None else len(best[0])
        if result["left_out"]:
            self.left_out[index] = [(name, reason) for name, reason in result["left_out"]]
        for counts, seconds, first, top in zip(self.models, result["seconds"], best, result["top"], strict=True):
            counts.seconds += seconds
            labels = result["labels"] or ()
            counts.top_1 += sum(label == one for label, one in zip(labels, first, strict=False))
            counts.top_5 += sum(label in five for label, five in zip(labels, top, strict=False))
            counts.confusion.update(zip(labels, first, strict=False))
        for i, one in enumerate(best):
            for j, other in enumerate(best[:i]):
                self.agreements[j, i] += sum(a == b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True)
class Evaluation:
    """The accuracy and speed of models on a data set.

    Attributes:
        models: the names of the models.
        data: the data set's name.
        classes: class names by label, if the data set has names.
        counts: the numbers of samples from which all shares are computed.
        seconds: the duration of this run in seconds, without the time of results that an interrupted run left.
        images_per_second: the number of samples that all processes or boards together ran in a second.
    """

    models: tuple[str, ...]
    data: str
    preprocess: str
    classes: dict[int, str]
    counts: Counts
    seconds: float
    images_per_second: float

    def top_1(self, model: int = 0) -> float | None:
        """The share of samples whose label is the model's best class; None if there are no labels."""
        return self.counts.models[model].top_1 / self.counts.labelled if self.counts.labelled else None

    def top_5(self, model: int = 0) -> float | None:
        """The share of samples whose label is among the model's best five classes; None if there are no labels."""
        return self.counts.models[model].top_5 / self.counts.labelled if self.counts.labelled else None

    def confusion(self, model: int = 0) -> list[tuple[int, int, int]]:
        """Rows of label, best class and number of samples, sorted; pairs that never occurred are left out."""
        return [(label, one, count) for (label, one), count in sorted(self.counts.models[model].confusion.items())]

    def agreement(self, first: int, second: int) -> float:
        """The share of samples for which two models have the same best class."""
        if first == second:
            return 1.0
        return self.counts.agreements[min(first, second), max(first, second)] / max(1, self.counts.samples)

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Name and reason of each sample that could not be read, in the order of the data set."""
        return [each for index in sorted(self.counts.left_out) for each in self.counts.left_out[index]]

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain numbers, strings, lists and dicts, for JSON."""
        numbers = range(len(self.models))
        return {
            "data": self.data,
            "preprocess": self.preprocess,
            "samples": self.counts.samples,
            "labelled": self.counts.labelled,
            "left_out": [list(each) for each in self.left_out],
            "classes": {str(label): name for label, name in self.classes.items()},
            "models": [
                {
                    "model": self.models[i],
                    "top_1": self.top_1(i),
                    "top_5": self.top_5(i),
                    "confusion": [list(each) for each in self.confusion(i)],
                    "seconds": self.counts.models[i].seconds,
                }
                for i in numbers
            ],
            "agreement": [[self.agreement(i, j) for j in numbers] for i in numbers],
            "seconds": self.seconds,
            "images_per_second": self.images_per_second,
        }
