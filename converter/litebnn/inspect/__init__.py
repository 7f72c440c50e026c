"""Looking at conversions: the report, its advice, and the comparison of source and result."""
