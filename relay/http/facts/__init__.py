"""The running relay as monitors are told it: gathered on the event loop, or off it where that takes time."""
