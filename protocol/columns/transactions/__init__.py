"""Runs of events become one row a transaction."""
