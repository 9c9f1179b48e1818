"""What a statement that changes rows touches: where replicas would change others in silence, the view stops."""
