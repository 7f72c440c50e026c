"""Evaluating models on whole data sets: here, on every core, on a cluster of Dask's, or on boards.

`run.py` puts together what the other modules are: a source of batches, a recipe that makes samples ready, what is done
with a batch, a place to run it, a partial file that keeps its result, and what counts the results.
"""
