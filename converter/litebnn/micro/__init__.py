"""Networks as C for microcontrollers."""
