"""The planning of a query: which files and parts of files it reads."""
