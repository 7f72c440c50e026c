"""Runs one process of a training with the code of examples/train. It writes the gradients of the last step and changes
no weight.

Usage:

    python -m tests.trainers.train_processes FRAMEWORK IMAGES OUTPUT

Rounding must not flip any sign, because one flipped sign would flip many more. PyTorch's batch norms round differently
in one and in two processes, so PyTorch computes in float64. The parameters of batch norms get random offsets. Without
these, a sum of signs that is equal to the mean would be normalized to 0, where rounding decides the sign.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from examples.train import recipe
from examples.train.options import Options


def keras_recorder(options: Options) -> Any:
    """An optimizer that only keeps the gradients."""
    import keras

    class Recorder(keras.optimizers.Optimizer):
        def build(self, variables: list[Any]) -> None:
            super().build(variables)
            self.found = self.add_optimizer_variables(variables, "gradient")

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.assign(self.found[self._get_variable_index(variable)], gradient)

    return Recorder(1.0)


def torch_recorder(network: Any, options: Options) -> list[Any]:
    """A list of one optimizer that changes no weights. PyTorch keeps the gradients in the weights' attribute `grad`, so
    the optimizer need not store them."""
    import torch

    return [torch.optim.SGD(network.parameters(), 0.0)]


def prepare_keras(engine: Any) -> None:
    for number, variable in enumerate(engine.network.trainable_variables):
        if len(variable.shape) == 1:
            variable.assign(variable + bias(number, tuple(variable.shape)))


def prepare_torch(engine: Any) -> None:
    import torch

    for number, parameter in enumerate(engine.network.parameters()):
        if parameter.dim() == 1:
            parameter.data += torch.tensor(bias(number, tuple(parameter.shape)))
    step, predict = engine.step, engine.predict
    engine.step = lambda images, *more: step(images.astype(np.float64), *more)
    engine.predict = lambda images: predict(images.astype(np.float64))


def bias(number: int, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(number).normal(size=shape).astype(np.float32) * 0.1


def gradients(engine: Any) -> dict[str, Any]:
    if engine.options.framework == "torch":
        return {name: parameter.grad.numpy() for name, parameter in engine.network.named_parameters()}
    return {variable.path.replace("/", "."): np.asarray(variable) for variable in engine.optimizer.found}


def main() -> None:
    framework, images, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    options = Options(
        data=images, output=output, framework=framework, network="small", size=16, batch=16, epochs=1, workers=1,
        validation_share=0.25, save_every=2, convert=False,
    )  # fmt: skip
    module: Any = importlib.import_module(f"examples.train.engines.{framework}")
    if framework == "torch":
        import torch

        torch.set_default_dtype(torch.float64)
        module._optimizers = torch_recorder
    else:
        module._optimizer = keras_recorder
    made: list[Any] = []
    load = recipe.load_engine

    def load_prepared(*arguments: Any) -> Any:
        made.append(load(*arguments))
        {"keras": prepare_keras, "torch": prepare_torch}[framework](made[0])
        return made[0]

    recipe.load_engine = load_prepared
    recipe.train(options)
    if made[0].process == 0:
        np.savez(output / "gradients.npz", **gradients(made[0]))


if __name__ == "__main__":
    main()
