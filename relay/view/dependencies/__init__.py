"""The source's tables as a view knows them, and the keys by which its transactions may be applied side by side."""
