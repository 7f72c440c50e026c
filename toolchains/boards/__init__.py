"""Measurements of boards: the boards' state, the models that litebnn-board-benchmark runs, and the results."""
