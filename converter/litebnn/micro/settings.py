"""The kernels, targets and wrappers that an export can have. This module imports nothing, and no other module repeats
the lists."""

KERNELS = ("compact", "fast")
TARGETS = ("cortex-m4", "cortex-m7", "cortex-m55", "rv32imc")

# The wrappers, and the kind of package that each makes of the exported folder.
PACKAGES = {
    "arduino": "a library of the Arduino IDE",
    "platformio": "a library of PlatformIO",
    "zephyr": "a module of Zephyr",
    "esp-idf": "a component of ESP-IDF",
}
