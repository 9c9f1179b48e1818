"""The definition of an audit, and how one is run and reported."""
