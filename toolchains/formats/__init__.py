"""Files of shared libraries and programs: ELF and Mach-O."""
