"""What is answered: the page of metrics, readiness, JSON and its description."""
