"""A view over several sources: the archive's generation that each of its generations is built from, and where it does not continue."""
