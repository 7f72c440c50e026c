"""Measuring boards: what they are, what litebnn-board-benchmark runs, and what they have returned."""
