"""Which transactions must wait for which, worked out from the rows that they change."""
