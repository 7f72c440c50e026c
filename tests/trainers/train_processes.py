"""One process of a training: writes the gradients of the first batch, and trains by the recipe if it is one of many.

python -m tests.trainers.train_processes FRAMEWORK IMAGES OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from examples.train.engines import Engine, load_engine
from examples.train.images import Batch, open_images
from examples.train.options import Options
from examples.train.recipe import train


def keras_gradients(engine: Any, batch: Batch) -> dict[str, Any]:
    import keras

    class Recorder(keras.optimizers.Optimizer):
        """Keeps gradients, and changes no weight."""

        def build(self, variables: list[Any]) -> None:
            super().build(variables)
            self.found = self.add_optimizer_variables(variables, "gradient")

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.assign(self.found[self._get_variable_index(variable)], gradient)

    recorder = Recorder(1.0)
    engine.model.compile(recorder)
    engine.model.train_on_batch(batch.images, batch.labels)
    return {variable.path: keras.ops.convert_to_numpy(variable) for variable in recorder.found}


def torch_gradients(engine: Any, batch: Batch) -> dict[str, Any]:
    engine.gradients(batch.images, batch.labels, 0)
    return {name: parameter.grad.numpy() for name, parameter in engine.network.named_parameters()}


def main() -> None:
    framework, images, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    options = Options(
        data=images, output=output, framework=framework, network="small", size=16, batch=16, epochs=1, workers=1,
        validation_share=0.25, save_every=2, convert=False,
    )  # fmt: skip
    engine: Engine = load_engine(options, 4)
    part = slice(engine.process, None, engine.processes)
    batch = next(open_images(options).training_batches(0, 1, part))
    found = {"keras": keras_gradients, "torch": torch_gradients}[framework](engine, batch)
    if engine.process == 0:
        output.mkdir(parents=True, exist_ok=True)
        np.savez(output / "gradients.npz", **{name.replace("/", "."): value for name, value in found.items()})
    if engine.processes > 1:
        train(options)


if __name__ == "__main__":
    main()
