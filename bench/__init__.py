"""Everything that measures: kernels layer by layer, whole models compared with other runtimes, and their networks."""
