"""Mutation testing: makes small errors in the code, one at a time. At least one test has to fail for each error."""
