"""A replica's connection as a state machine without I/O: bytes in, requests out, answers in, bytes out."""
