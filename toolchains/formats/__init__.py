"""Reads files of shared libraries and programs, in the formats ELF, Mach-O and PE."""
