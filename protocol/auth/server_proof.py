"""The proof that a MariaDB server adds to a login over TLS, so that its client trusts a certificate without an authority.

From 11.4 on, replicas and clients of MariaDB verify certificates by default. If they were given no authority, they accept any
certificate of a server that proves with it that it knows the account's secret, which nobody in between can do.
"""

import hashlib

_KIND = b"\x01"


def server_proof(stored_secret: bytes, scramble: bytes, certificate_digest: bytes) -> bytes:
    """Return the text of the OK that accepts the login: a byte for its kind, 64 hexadecimal digits.

    `stored_secret` is mysql_native_password's hash (20 bytes) or client_ed25519's public key (32 bytes); other plugins have none.
    `scramble` contains the 20 bytes of the greeting, or of a switch to mysql_native_password. `certificate_digest` is the SHA-256 of
    the server's certificate in DER form.
    Source: MariaDB 11.8.6, its packets.
    """
    return _KIND + hashlib.sha256(stored_secret + scramble + certificate_digest).hexdigest().upper().encode()
