"""Fuzzing: what strangers may hand to litebnn, mutated for as long as one likes."""
