"""Hatchling's build hook: puts the op library into the wheel, and the platform that it is for into the wheel's name."""

import os
import shutil
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the library with the toolkit; `invoke wheel` says for what by environment variables."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the toolkit needs and this machine lacks."""
        extras = self.metadata.core.optional_dependencies
        wanted = {"filelock", "pyelftools", "tomli", *(name for name in ("cmake", "ninja") if not shutil.which(name))}
        tools = [text for text in extras["dev"] if Requirement(text).name in wanted]
        has_compiler = os.environ.get("CXX", "").strip() or any(map(shutil.which, ("c++", "g++", "clang++")))
        return tools if has_compiler else [*tools, *extras["cross"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the library to the wheel; an editable install uses the one in build/host."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from toolchains.targets import ToolkitError
        from toolchains.wheel import TARGET_VARIABLE, TOOLCHAIN_VARIABLE, contents

        try:
            target, toolchain = os.environ.get(TARGET_VARIABLE, "host"), os.environ.get(TOOLCHAIN_VARIABLE, "auto")
            build_data.update(contents(target, toolchain))
        except ToolkitError as error:
            raise SystemExit(f"error: {error}") from error
