"""Measurements of boards: their state, the models that litebnn-board-benchmark runs, and the returned results."""
