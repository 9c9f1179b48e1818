"""The facts about the running relay for monitors: gathered on the event loop, or off it if that takes time."""
