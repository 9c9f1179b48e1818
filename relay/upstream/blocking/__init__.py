"""Connections to servers that block, for commands that read tables in threads of their own."""
