"""Ops between quantizations become int8, and weights and interfaces get the types that were requested."""
