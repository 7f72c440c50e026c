"""One suite for every runtime that litebnn serves, each in an environment of its own.

`cases.py` writes models with inputs and expected outputs, `suite.py` runs them with whatever runtime it is started in,
`environments.py` makes the environments and starts it in each: `invoke test --runtimes`.
"""
