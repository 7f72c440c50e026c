"""Mutation testing: small errors are put into the code, one at a time, and a test has to fail for each."""
