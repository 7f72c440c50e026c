"""The kernels, targets and wrappers that an export can have. This module imports nothing. No other module repeats
these lists.
"""

KERNELS = ("compact", "fast")
TARGETS = ("cortex-m4", "cortex-m7", "cortex-m55", "rv32imc")

# The wrappers. For each, the kind of package that it makes of the exported folder.
PACKAGES = {
    "arduino": "a library of the Arduino IDE",
    "platformio": "a library of PlatformIO",
    "zephyr": "a module of Zephyr",
    "esp-idf": "a component of ESP-IDF",
}
