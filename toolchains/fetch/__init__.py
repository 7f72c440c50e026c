"""Downloads the files that the table lock.toml names, and checks their hashes."""
