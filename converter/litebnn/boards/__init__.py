"""Boards, which are reached over SSH: connections, and running batches of a data set there."""
