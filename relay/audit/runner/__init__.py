"""What an audit is, and how one is run and reported."""
