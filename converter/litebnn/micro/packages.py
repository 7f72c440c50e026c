"""The files around an exported network: its builds, and wrappers for Arduino, PlatformIO, Zephyr and ESP-IDF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from litebnn.micro.folder import filled

# The files of an exported folder that are made from templates, each with its path and its template. The first table has
# the files of every export. The second table has additional files, by the build system that needs them.
_BASE = {"CMakeLists.txt": "CMakeLists.txt", "Makefile": "Makefile", "README.md": "README.md"}
_ADDED: Mapping[str, Mapping[str, str]] = {
    "arduino": {
        "library.properties": "library.properties",
        "keywords.txt": "keywords.txt",
        "examples/@NAME@_time/@NAME@_time.ino": "sketch.ino",
    },
    "platformio": {"library.json": "library.json"},
    "zephyr": {
        "zephyr/module.yml": "zephyr_module.yml",
        "zephyr/CMakeLists.txt": "zephyr_CMakeLists.txt",
        "zephyr/Kconfig": "zephyr_Kconfig",
    },
    "esp-idf": {"idf_component.yml": "idf_component.yml"},
}
# ESP-IDF reads the CMakeLists.txt in the root of a component. This text is added to the CMakeLists.txt of every export.
_ESP_IDF = """if(ESP_PLATFORM)
  idf_component_register(SRCS
@CMAKE_SOURCES@    INCLUDE_DIRS src)
  target_compile_options(${COMPONENT_LIB} PRIVATE -ffp-contract=off)
  return()
endif()

"""


def package_files(packages: Sequence[str], values: Mapping[str, object]) -> dict[str, str]:
    """The texts of the files, by their paths in the folder."""
    files = dict(_BASE)
    for package in packages:
        files.update(_ADDED[package])
    component = _ESP_IDF.replace("@CMAKE_SOURCES@", str(values["CMAKE_SOURCES"])) if "esp-idf" in packages else ""
    known = {**values, "ESP_IDF": component}
    name = str(values["NAME"])
    return {path.replace("@NAME@", name): filled(template, known) for path, template in files.items()}
