"""Checkpoints: the state of a training in one file, which is written whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from examples.train.options import flag
from litebnn.files import write_whole

NAME = "checkpoint.npz"
_ABOUT = "about"

State = dict[str, npt.NDArray[Any]]


def save(folder: Path, step: int, computation: dict[str, str], state: State) -> None:
    """Writes a checkpoint: the state of the training after `step` steps.

    Random generators need no state, because the random numbers of a step are made from the seed and the step's number.
    """
    about = json.dumps({"step": step, "computation": computation})
    content = io.BytesIO()
    np.savez(content, **{_ABOUT: np.array(about), **state})
    write_whole(folder / NAME, content.getvalue())


def load(folder: Path, computation: dict[str, str]) -> tuple[int, State] | None:
    """Reads the checkpoint in `folder`: the number of steps that are done and the state after them; None without a
    checkpoint.

    Raises:
        ValueError: the checkpoint is damaged, or belongs to a training with other options.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            state = dict(archive)
            about = json.loads(str(state.pop(_ABOUT)))
            step, before = int(about["step"]), dict(about["computation"])
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint of a training: {error}") from None
    for name, value in computation.items():
        if before.get(name) != value:
            raise ValueError(
                f"{path} is of another training: {flag(name)} was {before.get(name)} and is {value}; give the same "
                "options or another --output"
            )
    return step, state
