"""The factor by which all learning rates are multiplied in the course of a training."""

import math


def factor(step: int, steps: int, warmup: float) -> float:
    """The factor of all learning rates, for step 0 to `steps` - 1. It rises from near 0 to 1, and then falls to
    0 by half a cosine.

    `warmup` is the share of all steps in which the factor rises. `step` is the number of steps that are done.

    >>> [round(factor(step, 10, 0.2), 3) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.038]
    """
    rising = round(steps * warmup)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))
