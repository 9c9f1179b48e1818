"""The effects of a statement that changes rows: where replicas would silently change others, the view stops."""
