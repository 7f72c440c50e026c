"""Benchmarks of kernels layer by layer, and of whole models compared with other runtimes."""
