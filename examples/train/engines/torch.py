"""Training with PyTorch, on one device, or on many with DistributedDataParallel if torchrun starts it."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import litebnn
from examples.train.checkpoint import State
from examples.train.engines import Array
from examples.train.engines.norm import synchronize
from examples.train.images import CHANNELS, Batch
from examples.train.networks import builder, weights_file
from examples.train.options import Options
from litebnn.torch import Bop, binary_weights, clip_weights, float_parameters, zoo

WEIGHTS = "weights.pt"
_NETWORK, _OPTIMIZERS, _SCALE = "network", "optimizers", "scale"


def make_engine(options: Options, classes: int) -> TorchEngine:
    torch.use_deterministic_algorithms(True, warn_only=True)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, cuBLAS is not deterministic
    if "WORLD_SIZE" in os.environ and not dist.is_initialized():
        dist.init_process_group()
    return TorchEngine(options, classes)


class TorchEngine:
    """A network in training with PyTorch. The class has the members of the protocol `Engine`."""

    def __init__(self, options: Options, classes: int) -> None:
        self.options = options
        is_alone = not dist.is_initialized()
        self.process, self.processes = (0, 1) if is_alone else (dist.get_rank(), dist.get_world_size())
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.manual_seed(options.seed)
        networks = {name: lambda classes, _, kind=kind: kind(classes) for name, kind in zoo.NETWORKS.items()}
        network: nn.Module = builder(options.network, "torch", networks)(classes, options.size)
        if options.weights is not None:
            zoo.load_weights(network, weights_file(options))
        self.network = network.to(self.device)
        self.trained = self.network
        if not is_alone:
            synchronize(self.network)
            self.trained = DistributedDataParallel(self.network)
        self.optimizers = _optimizers(self.network, options)
        self.rates = [group[_rate_of(group)] for optimizer in self.optimizers for group in optimizer.param_groups]
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=options.precision == "float16")
        self.teacher = None if options.teacher is None else _teacher(options.teacher).to(self.device)
        self.losses: list[Tensor] = []

    def step(self, images: Array, labels: Array, rate: float, step: int) -> None:
        self.gradients(images, labels, step)
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        for group, full in zip(groups, self.rates, strict=True):
            group[_rate_of(group)] = full * rate
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()

    def gradients(self, images: Array, labels: Array, step: int) -> None:
        """Computes the gradients of one batch, averaged over all processes."""
        # In each step, the random numbers of dropout and similar layers differ between processes.
        torch.manual_seed(np.random.SeedSequence((self.options.seed, step, self.process)).generate_state(1)[0].item())
        self.trained.train()
        given, expected = self._channels_first(images), torch.from_numpy(labels).long().to(self.device)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        with torch.autocast(self.device.type, **self._precision()):
            scores = self.trained(given)
        loss = self._loss(given, scores.float(), expected)
        self.losses.append(loss.detach())
        self.scaler.scale(loss).backward()

    def _precision(self) -> dict[str, Any]:
        name = self.options.precision
        return {"enabled": False} if name == "float32" else {"dtype": getattr(torch, name)}

    def _loss(self, images: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(scores, labels)
        if self.teacher is None:
            return loss
        with torch.no_grad():
            taught = self.teacher(images)
        heat, share = self.options.temperature, self.options.teacher_share
        distance = F.kl_div(
            F.log_softmax(scores / heat, dim=1), F.log_softmax(taught / heat, dim=1), log_target=True,
            reduction="batchmean",
        )  # fmt: skip
        return (1 - share) * loss + share * heat**2 * distance

    def loss(self) -> float:
        losses, self.losses = self.losses, []
        return self._sum(torch.stack(losses).sum()) / (len(losses) * self.processes)

    def accuracy(self, batches: Iterable[Batch]) -> float:
        right, count = 0.0, 0
        for batch in batches:
            is_right = self.predict(batch.images).argmax(axis=-1) == batch.labels
            right, count = right + float((is_right * batch.weights).sum()), count + batch.count
        return self._sum(torch.tensor(right, device=self.device)) / count

    def _sum(self, value: Tensor) -> float:
        """The sum of a value over all processes."""
        if self.processes > 1:
            dist.all_reduce(value)
        return float(value)

    def predict(self, images: Array) -> Array:
        self.network.eval()
        with torch.no_grad():
            scores: Array = self.network(self._channels_first(images)).cpu().numpy()
        return scores

    def _channels_first(self, images: Array) -> Tensor:
        # The images are only permuted, not copied. They keep their layout in memory, which is the fastest for
        # convolutions.
        return torch.from_numpy(images).to(self.device).permute(0, 3, 1, 2)

    def state(self) -> State:
        found: dict[str, Tensor] = {f"{_NETWORK}/{name}": value for name, value in self.network.state_dict().items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, values in optimizer.state_dict()["state"].items():
                found |= {f"{_OPTIMIZERS}/{number}/{index}/{name}": torch.as_tensor(v) for name, v in values.items()}
        found |= {f"{_SCALE}/{name}": torch.as_tensor(value) for name, value in self.scaler.state_dict().items()}
        return {name: value.cpu().numpy() for name, value in found.items()}

    def load_state(self, state: State) -> None:
        def part(name: str) -> dict[str, Tensor]:
            start = f"{name}/"
            return {key[len(start) :]: torch.from_numpy(v) for key, v in state.items() if key.startswith(start)}

        _load(self.network, part(_NETWORK))
        for number, optimizer in enumerate(self.optimizers):
            states: dict[int, dict[str, Tensor]] = {}
            for key, value in part(f"{_OPTIMIZERS}/{number}").items():
                index, _, name = key.partition("/")
                states.setdefault(int(index), {})[name] = value
            optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
        if self.scaler.is_enabled():
            self.scaler.load_state_dict({name: value.item() for name, value in part(_SCALE).items()})

    def save_weights(self, folder: Path) -> None:
        path = folder / WEIGHTS
        torch.save(self.network.state_dict(), path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def convert(self) -> bytes:
        example = torch.zeros(1, CHANNELS, self.options.size, self.options.size)
        return bytes(litebnn.convert_torch_model(copy.deepcopy(self.network).cpu(), example, channels_last=True))


def _rate_of(group: dict[str, Any]) -> str:
    """The name under which an optimizer's group stores the learning rate. Bop has no learning rate, so its gamma
    takes that place.
    """
    return "gamma" if "gamma" in group else "lr"


def _optimizers(network: nn.Module, options: Options) -> list[torch.optim.Optimizer]:
    if options.optimizer == "bop":
        bop = Bop(binary_weights(network), options.bop_threshold, options.bop_gamma)
        return [bop, torch.optim.Adam(float_parameters(network), options.learning_rate)]
    adam = torch.optim.Adam(network.parameters(), options.learning_rate)
    clip = getattr(network, "weight_clip", 1.0)
    adam.register_step_post_hook(lambda *_: clip_weights(network, clip))
    return [adam]


def _load(network: nn.Module, weights: dict[str, Tensor]) -> None:
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the checkpoint is of another network: {str(error).splitlines()[0]}") from None


def _teacher(path: Path) -> Any:
    """Loads a teacher network from a file that torch.export.save wrote. The teacher takes any number of images and
    gives logits."""
    try:
        return torch.export.load(path).module()
    except Exception as error:
        raise ValueError(f"--teacher {path} is no file of torch.export.save: {error}") from None
