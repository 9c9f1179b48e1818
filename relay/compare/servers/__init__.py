"""The two servers of a comparison, and the places that they have in common."""
