"""What is known of the numbers in a tensor, whatever the input of the model is."""
