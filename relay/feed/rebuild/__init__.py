"""Tables and their changes that are made from the archive again, beside those that are there, which they then replace."""
