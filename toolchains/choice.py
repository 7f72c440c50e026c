"""Chooses the compiler with which a target is built."""

import os
from collections.abc import Callable

from toolchains.compilers import Compiler, find_clang, find_gcc, find_ndk, find_zig
from toolchains.container import find_docker
from toolchains.targets import TOOLCHAINS, Target, ToolkitError

FINDERS: dict[str, Callable[[Target], Compiler]] = {
    "gcc": find_gcc,
    "clang": find_clang,
    "zig": find_zig,
    "docker": find_docker,
    "ndk": find_ndk,
}


def find_compiler(target: Target, toolchain: str) -> Compiler:
    """The compiler of `toolchain` for `target`; for "auto" the first compiler in the target's list.

    For this machine, "auto" takes the compiler that the environment variable CXX names. If it is unset, it takes the
    first of the target's toolchains that is installed or can be installed.

    Raises:
        ToolkitError: the toolchain is unknown, the target is not built with it, or its compiler is missing and cannot
            be installed.
    """
    if toolchain not in ("auto", *TOOLCHAINS):
        raise ToolkitError(f"no toolchain is called '{toolchain}'; the toolchains are auto, {', '.join(TOOLCHAINS)}")
    if toolchain not in ("auto", *target.toolchains):
        known = " or ".join(target.toolchains)
        raise ToolkitError(f"{target.name} is built with --toolchain={known}, not with --toolchain={toolchain}")
    if toolchain == "auto" and not target.triple and os.environ.get("CXX", "").strip():
        toolchain = "gcc"
    if toolchain == "auto" and target.triple:
        return _default(target)
    names = target.toolchains if toolchain == "auto" else (toolchain,)
    reasons = []
    for name in names:
        try:
            return FINDERS[name](target)
        except ToolkitError as reason:
            reasons.append(str(reason))
    which = f"no compiler for {target.name}: " if len(reasons) > 1 else ""
    raise ToolkitError(which + "; ".join(dict.fromkeys(reasons)))


def _default(target: Target) -> Compiler:
    """The compiler of the target's first toolchain.

    No other toolchain is tried, because programs that another compiler builds might not run on the same boards.
    """
    first, *others = target.toolchains
    try:
        return FINDERS[first](target)
    except ToolkitError as reason:
        instead = f" (--toolchain={' or '.join(others)} would make programs for other boards)" if others else ""
        raise ToolkitError(f"{reason}{instead}") from reason
