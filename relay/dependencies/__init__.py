"""Which transactions of a source may be applied side by side: what its tables' keys say."""
