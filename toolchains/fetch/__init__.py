"""Fetching what lock.toml names, and nothing else: each file is held against its hash."""
