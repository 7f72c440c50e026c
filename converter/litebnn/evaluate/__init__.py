"""Evaluation of models on whole data sets: in this process, on all cores, on a Dask cluster, or on boards.

The module `run.py` combines the other modules. A source has batches, a recipe preprocesses them, and scoring runs the
models. An executor decides on which machine that happens, a partial file keeps results, and metrics count them.
"""
