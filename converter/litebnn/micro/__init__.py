"""Exports networks as C code for microcontrollers."""

KERNELS = ("compact", "fast")
TARGETS = ("cortex-m4", "cortex-m7", "cortex-m55", "rv32imc")

# The build systems for which the exported folder can become a package, and the kind of package for each.
PACKAGES = {
    "arduino": "a library of the Arduino IDE",
    "platformio": "a library of PlatformIO",
    "zephyr": "a module of Zephyr",
    "esp-idf": "a component of ESP-IDF",
}
