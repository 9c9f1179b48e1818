"""XA transactions, which a source prepares in one group and ends in another."""
