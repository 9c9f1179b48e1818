"""One connection to a source: login, identity, settings, and the queries it supports."""
