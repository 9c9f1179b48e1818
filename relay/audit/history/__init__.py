"""One row through an archive: the key that names it, and its changes, also under other keys."""
