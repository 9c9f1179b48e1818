"""What newer servers of MySQL refuse in statements of an older one: it is rewritten, or stops the view by name."""
