"""A test suite for every runtime that litebnn serves. Each runtime has its own environment.

`cases.py` writes models with inputs and expected outputs, and `suite.py` runs them in the runtime of its environment.
`environments.py` makes the environments and starts the suite in each: `invoke test --runtimes`.
"""
