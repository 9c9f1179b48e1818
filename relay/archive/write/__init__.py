"""The way in: runs of events become files, synced, published, and at last purged."""
