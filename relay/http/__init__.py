"""The HTTP port for monitors: metrics, health, and the relay's state as JSON. It only reads."""
