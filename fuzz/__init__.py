"""Fuzzing: inputs that strangers may give to litebnn, mutated for any length of time."""
