"""Reports: the changes of a conversion, the cost of a model, advice, and the comparison of source and result."""
