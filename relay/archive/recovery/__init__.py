"""What a start finds after any end, and what it does about it."""
