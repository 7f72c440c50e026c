"""Fuzzing: calls litebnn with mutated inputs of the kinds that come from untrusted files."""
