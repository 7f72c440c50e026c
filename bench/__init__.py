"""All that measures: kernels layer by layer, whole models beside other runtimes, and the networks to do it with."""
