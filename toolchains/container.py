"""Builds in a Docker container: makes the image of docker/Dockerfile, and runs commands in it.

Usage:

    python -m toolchains.container

This command builds the image; `--toolchain=docker` also does so if the image is missing.
"""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from toolchains.command_line import exit_code
from toolchains.compilers import Compiler, zig_arguments
from toolchains.fetch import pypi
from toolchains.fetch.lock import find
from toolchains.needs import needs
from toolchains.targets import BUILD, ROOT, Target, ToolkitError

RECIPE = ROOT / "docker"
# The base image that docker/base_image.sh makes. If it does not exist, the Dockerfile fetches another base image from a
# registry.
LOCAL_BASE = "litebnn-base:bookworm-slim"
ZIG = "/opt/ziglang/zig"
# For each name that the Docker engine has for a CPU, the platform tag of zig's wheel.
WHEEL_PLATFORMS = {"amd64": "manylinux_2_12_x86_64", "arm64": "manylinux_2_17_aarch64"}


def connect() -> Any:
    """A client of the Docker engine.

    Raises:
        ToolkitError: the Python package docker is missing, or no engine answers.
    """
    try:
        from docker.client import DockerClient
        from docker.errors import DockerException
    except ImportError as error:
        raise ToolkitError(f"the Python package docker is missing: {needs()['docker'].command}") from error
    try:
        client = DockerClient.from_env()
        client.ping()
    except (DockerException, OSError) as error:
        raise ToolkitError(
            f"no Docker engine answers; is it started, and may you use it? ({_first_line(error)}): "
            f"{needs()['docker-engine'].command}"
        ) from error
    return client


def image_name(client: Any) -> str:
    """The name of the image, which changes with its recipe and with the base image of this machine."""
    base = [image.id for image in client.images.list(name=LOCAL_BASE)]
    recipe = "".join([(RECIPE / "Dockerfile").read_text(encoding="utf-8"), find("ziglang").line, *base])
    return f"litebnn-cross:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def build_image() -> str:
    """Builds the image unless it exists; returns its name.

    Raises:
        ToolkitError: no engine answers, or the image cannot be built.
    """
    client = connect()
    from docker.errors import DockerException

    name = image_name(client)
    if client.images.list(name=name):
        return name
    start = time.monotonic()
    base = {"BASE": LOCAL_BASE} if client.images.list(name=LOCAL_BASE) else {}
    on = f" on {LOCAL_BASE}" if base else ""
    print(f"docker: building the image {name}{on}, which takes a few minutes", flush=True)
    context = BUILD / "docker"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir(parents=True)
    shutil.copy2(RECIPE / "Dockerfile", context)
    _unpack_compiler(context, client.version()["Arch"])
    try:
        image, _ = client.images.build(path=str(context), tag=name, network_mode="host", rm=True, buildargs=base)
    except DockerException as error:
        raise ToolkitError(
            f"the image {name} cannot be built: {_first_line(error)} "
            "(where no registry can be reached, docker/base_image.sh makes the base image)"
        ) from error
    shutil.rmtree(context)
    print(f"docker: {name}, {image.attrs['Size'] / 1e6:.0f} MB, {time.monotonic() - start:.0f} s", flush=True)
    return name


def _unpack_compiler(context: os.PathLike[str], engine_cpu: str) -> None:
    """Unpacks the locked zig, for Linux on the engine's CPU, into `context`."""
    if engine_cpu not in WHEEL_PLATFORMS:
        raise ToolkitError(f"the Docker engine's CPU is {engine_cpu}; the image is for {' and '.join(WHEEL_PLATFORMS)}")
    platform, target = f"--platform={WHEEL_PLATFORMS[engine_cpu]}", f"--target={os.fspath(context)}"
    pypi.install(find("ziglang"), platform, target, what="the image's compiler")


def run_in_container(command: Sequence[str], log: TextIO) -> int:
    """Runs `command` in the image, as the current user, with the project read-only except for build/."""
    client = connect()
    from docker.errors import DockerException

    # Inside the container, the folders have the same paths as outside, so that no path needs a translation.
    volumes = {str(ROOT): {"bind": str(ROOT), "mode": "ro"}, str(BUILD): {"bind": str(BUILD), "mode": "rw"}}
    container = client.containers.create(
        image_name(client),
        list(command),
        user=f"{os.getuid()}:{os.getgid()}",
        volumes=volumes,
        working_dir=str(ROOT),
        environment={"HOME": "/tmp", "ZIG_GLOBAL_CACHE_DIR": str(BUILD / "zig-cache")},
        network_mode="none",
    )
    try:
        container.start()
        for chunk in container.logs(stream=True, follow=True):
            log.write(chunk.decode(errors="replace"))
        return int(container.wait()["StatusCode"])
    except DockerException as error:
        raise ToolkitError(f"the container stopped: {_first_line(error)}") from error
    finally:
        container.remove(force=True)


def find_docker(target: Target) -> Compiler:
    """The zig of the Docker image, which is built first if it is missing.

    Raises:
        ToolkitError: no engine answers, or the image cannot be built.
    """
    if not target.triple:
        raise ToolkitError(
            f"{target.name} is this machine, not the container: name its target instead (--target=x86_64)"
        )
    return Compiler("docker", f"zig in {build_image()}", zig_arguments(target, ZIG), "cmake", "ninja", run_in_container)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def main() -> int:
    """Runs the command line and returns the exit code."""
    return exit_code(lambda: print(build_image()))


if __name__ == "__main__":
    sys.exit(main())
