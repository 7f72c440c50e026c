"""Chooses a PyTorch without CUDA: PyPI's build for Linux requires several GB of it."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

# The user's own arguments for pip.
VARIABLE = "LITEBNN_TORCH"
# pip's arguments, tried in turn until one gives a build for CPUs.
SOURCES = (("torch==2.13.0",), ("torch", "--extra-index-url=https://download.pytorch.org/whl/cpu"))


def without_cuda(python: Path) -> tuple[tuple[str, ...], str] | None:
    """pip's arguments for a PyTorch without CUDA and its version; None if the pip of `python` finds none."""
    # By default, pip retries an unreachable index for minutes.
    options = ("--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--retries=0", "--report=-")
    for source in SOURCES:
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", *options, *source]
        asked = subprocess.run(command, capture_output=True, text=True)
        if asked.returncode:
            continue
        (torch,) = (item["metadata"] for item in json.loads(asked.stdout)["install"])
        needs = " ".join(torch.get("requires_dist", ()))
        if sys.platform != "linux" or ("nvidia" not in needs and "cuda" not in needs):
            return source, str(torch["version"])
    return None


def choose(python: Path) -> tuple[str, ...]:
    """pip's arguments for the PyTorch to install: the user's, or a build for CPUs if there is one. Announces the
    download."""
    if own := os.environ.get(VARIABLE):
        print(f"fetching PyTorch as {VARIABLE} says: pip install {own}", flush=True)
        return tuple(shlex.split(own))
    print("looking for a PyTorch for CPUs", flush=True)
    if found := without_cuda(python):
        source, version = found
        size = "about 0.2 GB; with litert-torch the environment takes 2 GB"
        print(f"fetching PyTorch {version}, for CPUs ({size})", flush=True)
        return source
    print(
        "fetching PyTorch with CUDA (several GB), for pip finds none for CPUs; interrupt to choose another by\n"
        f'{VARIABLE}="torch --index-url=URL", where URL is of an index of https://pytorch.org/get-started',
        flush=True,
    )
    return ("torch",)
