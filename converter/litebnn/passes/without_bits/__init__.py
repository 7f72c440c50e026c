"""What is done to a model of which no layer is binary, in the place of all phases."""
