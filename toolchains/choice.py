"""Chooses the compiler that builds a target."""

import os
from collections.abc import Callable

from toolchains.compilers import Compiler, find_gcc, find_ndk, find_zig
from toolchains.container import find_docker
from toolchains.targets import Target, ToolkitError

# In the order of "auto".
FINDERS: dict[str, Callable[[Target], Compiler]] = {"gcc": find_gcc, "zig": find_zig, "docker": find_docker}
TOOLCHAINS = ("auto", *FINDERS)


def find_compiler(target: Target, toolchain: str) -> Compiler:
    """The compiler of `toolchain` for `target`; for "auto" the first that is there or can be had.

    For this machine "auto" takes the compiler that the environment variable CXX names, and no other.

    Raises:
        ToolkitError: no such toolchain, or its compiler cannot be had.
    """
    if toolchain not in TOOLCHAINS:
        raise ToolkitError(f"no toolchain is called '{toolchain}'; the toolchains are {', '.join(TOOLCHAINS)}")
    if target.ndk_abi:
        if toolchain != "auto":
            raise ToolkitError(f"{target.name} is built with the Android NDK only, not with --toolchain={toolchain}")
        return find_ndk(target)
    if toolchain == "auto" and not target.triple and os.environ.get("CXX", "").strip():
        toolchain = "gcc"
    if toolchain != "auto":
        return FINDERS[toolchain](target)
    reasons = []
    for find in FINDERS.values():
        try:
            return find(target)
        except ToolkitError as reason:
            reasons.append(str(reason))
    raise ToolkitError(f"no compiler for {target.name}: {'; '.join(dict.fromkeys(reasons))}")
