"""The answers: the page of metrics, readiness, JSON and its description."""
