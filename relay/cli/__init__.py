"""The command line: which commands there are, and what each is asked; what they do is elsewhere."""
