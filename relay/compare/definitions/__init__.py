"""Definitions of tables and programs, and whether two of them mean the same."""
