"""The RSA key pair by which a password travels over a clear connection in caching_sha2_password's full authentication."""

from typing import Final, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_BITS: Final = 2048
CIPHERTEXT_BYTES: Final = KEY_BITS // 8
# What clients encrypt with; SHA-1 is no weakness in OAEP. Source: MySQL 9.x `sql-common/client_authentication.cc`.
_PADDING: Final = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


class RsaKey:
    """A key pair. `new` takes a tenth of a second or several, `decrypt` a millisecond: both are for a thread."""

    def __init__(self, private_key: rsa.RSAPrivateKey) -> None:
        self._private_key = private_key
        self.public_pem = private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def new(cls) -> Self:
        """Makes one of 2,048 bits, as servers do."""
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS))

    def decrypt(self, ciphertext: bytes) -> bytes | None:
        """What the client encrypted; None for what is not encrypted with this key."""
        try:
            return self._private_key.decrypt(ciphertext, _PADDING)
        except ValueError:
            return None
