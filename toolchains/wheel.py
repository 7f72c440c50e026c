"""Makes a wheel for a target: dist/litebnn-VERSION-py3-none-PLATFORM.whl, with the op library inside.

Usage:

    python -m toolchains.wheel --target=rpi4

The wheel serves every Python version and every board of its platform.
"""

import copy
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from toolchains.binaries import floors
from toolchains.build import build
from toolchains.choice import find_compiler
from toolchains.command_line import parser, run
from toolchains.needs import with_pip
from toolchains.parts import FILE_NAME, bill_of_materials, parts_of, write
from toolchains.targets import ROOT, ToolkitError, find_system_target, find_target

# The environment variables by which `build_wheel` tells the build hook, which runs in another process, what to build.
TARGET_VARIABLE = "LITEBNN_WHEEL_TARGET"
TOOLCHAIN_VARIABLE = "LITEBNN_WHEEL_TOOLCHAIN"


def contents(target: str, toolchain: str) -> dict[str, Any]:
    """Builds the op library for a wheel.

    Args:
        target: a row of targets.toml. Its family is built, because the platform tag promises that the wheel runs on
            every CPU of that kind.
        toolchain: as for `build` in toolchains/build.py.

    Returns:
        Hatchling's build data: the files to include, the bill of materials and the wheel's tag.

    Raises:
        ToolkitError: the errors of `build`, or the library needs a newer glibc than the platform tag promises.
    """
    row = find_system_target(target)
    if row.triple and not row.wheel:
        raise ToolkitError(f"there are no wheels for {target}: targets.toml has no tag of a wheel for it")
    library = build(row.family, toolchain, programs=False)
    platform = row.wheel or re.sub(r"\W", "_", sysconfig.get_platform())
    promised = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    asks = floors(library).get("GLIBC", "0") if promised else ""
    if promised and tuple(map(int, asks.split("."))) > tuple(map(int, promised.groups())):
        raise ToolkitError(f"a {platform} wheel's library may not ask for glibc {asks}: use --toolchain=zig")
    family = find_target(row.family)
    inside = f"litebnn/lib/{row.names.library}"
    parts = parts_of("wheel", family, find_compiler(family, toolchain).name)
    bill = bill_of_materials("litebnn", {inside: library}, parts)
    return {
        "force_include": {
            str(library): inside,
            str(write_c_sources(family.folder / "wheel" / "sources.zip")): "litebnn/micro/sources.zip",
        },
        "sbom_files": [str(write(family.folder / "wheel" / FILE_NAME, bill))],
        "pure_python": False,
        "tag": f"py3-none-{platform}",
    }


def write_c_sources(archive: Path) -> Path:
    """Writes the C sources for microcontrollers and their license to an archive, as `litebnn.micro.folder` reads them.

    Uncompressed, because the wheel compresses them better as a whole. The same files always give the same archive.
    """
    folder = ROOT / "ops" / "micro"
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as opened:
        for name, path in {**files, "LICENSE": ROOT / "LICENSE"}.items():
            opened.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return archive


def build_wheel(target: str, toolchain: str = "zig") -> Path:
    """Makes the wheel for the platform of `target`.

    Args:
        target: a row of targets.toml.
        toolchain: as for `build` in toolchains/build.py. Not every toolchain meets the C library version of the
            platform tag; zig and Docker do.

    Returns:
        The path of the wheel in dist/. An existing wheel is unchanged if the build fails.

    Raises:
        ToolkitError: the target is unknown, the build failed, or the package deflate is missing.

    Example:
        >>> build_wheel("rpi4")  # doctest: +SKIP
        PosixPath('.../dist/litebnn-VERSION-py3-none-manylinux_2_28_aarch64.whl')
    """
    find_system_target(target)
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=dist, prefix=".wheel") as folder:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        variables = {TARGET_VARIABLE: target, TOOLCHAIN_VARIABLE: toolchain}
        run = subprocess.run(command, cwd=ROOT, env=os.environ | variables, stderr=subprocess.PIPE, text=True)
        wheels = list(Path(folder).glob("*.whl"))
        if run.returncode or len(wheels) != 1:
            lines = run.stderr.strip().splitlines()
            raise ToolkitError(lines[-1].removeprefix("error: ") if lines else "hatchling made no wheel")
        return _compressed(wheels[0], Path(folder) / "compressed").replace(dist / wheels[0].name)


def _compressed(wheel: Path, result: Path) -> Path:
    """Writes the files of a wheel to another one. libdeflate makes them 3 % smaller than zlib, and always the same."""
    try:
        from deflate import deflate_compress
    except ImportError as error:
        raise ToolkitError(f"a wheel is compressed by deflate: {with_pip('pip install deflate')}") from error

    class Compressor:
        """What zipfile asks of a compressor: the data comes at once, and leaves at the end."""

        def compress(self, data: bytes) -> bytes:
            self.data = data
            return b""

        def flush(self) -> bytes:
            return bytes(deflate_compress(self.data, compresslevel=12))

    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(result, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            with target.open(copy.copy(info), "w") as file:
                file._compressor = Compressor()  # type: ignore[attr-defined]
                file.write(content)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    own = parser("toolchains.wheel", __doc__, toolchain="zig")
    return run(own, lambda **options: print(build_wheel(**options).relative_to(ROOT)), arguments)


if __name__ == "__main__":
    sys.exit(main())
