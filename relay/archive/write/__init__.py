"""The way in: runs of events become files, are synced, published, and at last purged."""
