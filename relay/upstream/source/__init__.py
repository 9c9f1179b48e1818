"""One connection to a source: login, identity, settings, what it can be asked."""
