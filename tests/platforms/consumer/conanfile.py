"""The test of the Conan package: builds a C++ program with the package, and runs the program."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"

    def requirements(self) -> None:
        self.requires(self.tested_reference_str)

    def layout(self) -> None:
        cmake_layout(self)

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self) -> None:
        if can_run(self):
            kind = "litebnn" if self.dependencies["litebnn"].options.shared else "litebnn_static"
            self.run(str(Path(self.build_folder, f"list_with_{kind}")), env="conanrun")
