"""Mutation testing: puts small errors into the code, one at a time; a test has to fail for each."""
