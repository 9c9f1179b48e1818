"""What a dump says of where it was taken, and the statements that make its restored copy a replica of a view."""
