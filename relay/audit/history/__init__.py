"""One row through an archive: the key that names it, the changes that are of it, also under other keys."""
