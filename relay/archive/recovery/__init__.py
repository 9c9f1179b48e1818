"""What a start finds after any end, and how it repairs that."""
