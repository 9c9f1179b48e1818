"""The state that a start finds after any end, and its repair."""
