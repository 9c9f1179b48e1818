"""A view over several sources: which of its generations are made from what, and where it does not go on."""
