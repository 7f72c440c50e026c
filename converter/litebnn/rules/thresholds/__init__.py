"""Signs are found, and their thresholds move to where they cost nothing."""
