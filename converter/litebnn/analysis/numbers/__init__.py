"""Facts about the numbers in a tensor that hold whatever the model's input is."""
