"""The downstream side: a source for replicas."""
