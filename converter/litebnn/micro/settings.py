"""The only lists of kernels, targets and wrappers that an export can be asked for. It imports nothing."""

KERNELS = ("compact", "fast")
TARGETS = ("cortex-m4", "cortex-m7", "cortex-m55", "rv32imc")

# Each wrapper, and the kind of package that it turns the folder into.
PACKAGES = {
    "arduino": "a library of the Arduino IDE",
    "platformio": "a library of PlatformIO",
    "zephyr": "a module of Zephyr",
    "esp-idf": "a component of ESP-IDF",
}
