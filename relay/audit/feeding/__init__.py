"""The feed as a query of Structured Streaming: executors decode, the driver commits."""
