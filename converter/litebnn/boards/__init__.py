"""Boards that are reached over SSH: connections, host keys, and programs that run on the boards."""
