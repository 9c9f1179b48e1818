"""A replica's or client's connection: socket, TLS, login, statements, its lines of log."""
