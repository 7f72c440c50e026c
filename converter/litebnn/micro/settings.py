"""The only lists of kernels, targets and wrappers that an export can be asked for. It imports nothing."""

KERNELS = ("compact", "fast")
TARGETS = ("cortex-m4", "cortex-m7", "cortex-m55", "rv32imc")

# Each wrapper, and what it makes of the folder.
PACKAGES = {
    "arduino": "a library of the Arduino IDE",
    "platformio": "a library of PlatformIO",
    "zephyr": "a module of Zephyr",
    "esp-idf": "a component of ESP-IDF",
}
