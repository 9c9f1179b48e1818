"""What one connection knows: the variables it has set and may see, and the refusals that it can be told."""
