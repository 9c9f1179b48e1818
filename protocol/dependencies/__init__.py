"""The transactions that each transaction must wait for, derived from the rows that they change."""
