"""Downloads the files that lock.toml names, and checks their hashes."""
