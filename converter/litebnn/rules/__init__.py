"""Rewrites of a graph, by phase."""
