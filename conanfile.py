"""The recipe of litebnn's library for Conan 2: `conan create .`."""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class LitebnnRecipe(ConanFile):  # type: ignore[misc]
    """The shared library or the archive, with headers and CMake's targets as `cmake --install` makes them."""

    name = "litebnn"
    description = "Ops of binarized neural networks for TensorFlow Lite and LiteRT"
    license = "Apache-2.0"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}  # noqa: RUF012, Conan reads the class's own values
    default_options = {"shared": False}  # noqa: RUF012
    exports = "converter/litebnn/__init__.py"
    exports_sources = "CMakeLists.txt", "LICENSE", "ops/*", "toolchains/cmake/*", "converter/litebnn/__init__.py"

    def set_version(self) -> None:
        """Reads the version from the Python package, because no other file contains it."""
        text = Path(self.recipe_folder, "converter", "litebnn", "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)
        assert found is not None
        self.version = found[1]

    def validate(self) -> None:
        """Refuses MSVC, which does not know the sources' GNU attributes and assembly."""
        if self.settings.compiler == "msvc":
            raise ConanInvalidConfiguration("MSVC cannot build litebnn: expected gcc or clang")

    def layout(self) -> None:
        """Selects CMake's usual folders."""
        cmake_layout(self)

    def generate(self) -> None:
        """Writes the toolchain file of the settings."""
        CMakeToolchain(self).generate()

    def build(self) -> None:
        """Builds the library."""
        cmake = CMake(self)
        cmake.configure()
        for target in ("litebnn", "litebnn_static"):
            cmake.build(target=target)

    def package(self) -> None:
        """Installs the development kit, and the license."""
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder, "licenses")))

    def package_info(self) -> None:
        """Tells Conan that the kit has its own files for CMake, and names the libraries to link."""
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/litebnn"]
        self.cpp_info.libs = ["litebnn"]
        if not self.options.shared and self.settings.os == "Linux":
            self.cpp_info.system_libs = ["stdc++", "m", "pthread", "dl"]
