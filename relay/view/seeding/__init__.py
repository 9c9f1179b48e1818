"""The place at which a dump was taken, and the statements that make its restored copy a replica of a view."""
