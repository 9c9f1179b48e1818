"""The source's tables, and what statements that define some say and make of them."""
