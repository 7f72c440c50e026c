"""Makes Debian packages of the library, its development files, and the programs: `invoke deb`."""
