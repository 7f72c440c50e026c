"""What a conversion did and what a model costs: the report, its advice, and the comparison of source and result."""
