"""Builds everything that a release distributes, and checks it: `invoke release --check`."""
