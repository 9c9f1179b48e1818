"""Inspection and operation of a view from outside the process that builds it."""
