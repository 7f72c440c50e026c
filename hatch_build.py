"""Hatchling's hooks: the wheel gets the op library, the platform in its name, and that platform's dependencies."""

import os
import shutil
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement


class DependenciesHook(MetadataHookInterface):
    """Selects the runtime that is installed with the wheel."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the dependencies: for a platform's wheel only its own, otherwise those of all platforms with markers.

        A 32-bit system under a 64-bit kernel reports the machine aarch64, so a marker in the wheel for 32-bit Arm would
        select the wrong runtime.
        """
        runtimes = self.config["runtimes"]
        metadata["dependencies"] = list(self.config["dependencies"])
        _find_toolkit(self.root)
        processor = _processor_of_the_wheel()
        for machine, requirements in runtimes.items():
            marker = f"platform_machine {'!= ' if machine == 'other' else '== '}'armv7l'"
            if processor:
                is_wanted = machine == (processor if processor in runtimes else "other")
                metadata["dependencies"] += requirements if is_wanted else []
            else:
                metadata["dependencies"] += [f"{text}; {marker}" for text in requirements]


def _find_toolkit(root: str) -> None:
    """Lets Python import the package toolchains."""
    sys.path.insert(0, root)


def _processor_of_the_wheel() -> str:
    """The CPU for which `invoke wheel` builds; "" for this machine's CPU."""
    target = os.environ.get("LITEBNN_WHEEL_TARGET", "host")
    if target == "host":
        return ""
    # The import is inside this function, because an installation from source may lack the toolkit's requirements.
    from toolchains.targets import ToolkitError, find_target

    try:
        return find_target(target).processor
    except ToolkitError as error:
        raise SystemExit(f"error: {error}") from error


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the library with the toolkit; `invoke wheel` selects the target through environment variables."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The toolkit's requirements that this machine lacks."""
        extras = self.metadata.core.optional_dependencies
        wanted = {
            "cyclonedx-python-lib",
            "filelock",
            "lief",
            "tomli",
            *(name for name in ("cmake", "ninja") if not shutil.which(name)),
        }
        tools = [text for text in extras["dev"] if Requirement(text).name in wanted]
        has_compiler = os.environ.get("CXX", "").strip() or any(map(shutil.which, ("c++", "g++", "clang++")))
        return tools if has_compiler else [*tools, *extras["cross"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the library to the wheel. An editable install uses the library in build/host instead."""
        if version == "editable":
            return
        _find_toolkit(self.root)
        from toolchains.targets import ToolkitError
        from toolchains.wheel import TARGET_VARIABLE, TOOLCHAIN_VARIABLE, contents

        try:
            target, toolchain = os.environ.get(TARGET_VARIABLE, "host"), os.environ.get(TOOLCHAIN_VARIABLE, "auto")
            build_data.update(contents(target, toolchain))
        except ToolkitError as error:
            raise SystemExit(f"error: {error}") from error
