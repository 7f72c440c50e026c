"""Exports networks as C code for microcontrollers."""
