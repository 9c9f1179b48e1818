"""Errors of the protocol layer. Decoders blame nobody; whoever knows whose bytes these are decides what follows."""


class ProtocolError(Exception):
    """Base of all errors raised in `protocol`."""


class Malformed(ProtocolError):
    """Bytes that cannot be what they should be."""


class Truncated(Malformed):
    """Bytes that end before what they announce."""
