"""The cross-compilation toolkit: the table of targets, the build driver, wheels and emulated tests."""
