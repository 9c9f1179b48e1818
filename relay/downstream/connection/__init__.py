"""The connection of a replica or client: its socket, TLS, login, statements and log lines."""
