"""The source's tables, and the effects of statements that define them."""
