"""The state of one connection: the variables it has set and may see, and the refusals that it can get."""
