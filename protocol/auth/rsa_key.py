"""The RSA key pair that protects a password on a clear connection in caching_sha2_password's full authentication."""

from typing import Final, Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

KEY_BITS: Final = 2048
CIPHERTEXT_BYTES: Final = KEY_BITS // 8
# The padding of clients; SHA-1 is no weakness in OAEP. Source: MySQL 9.x `sql-common/client_authentication.cc`.
_PADDING: Final = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


class RsaKey:
    """A key pair. `new` takes a tenth of a second or several, `decrypt` a millisecond: both should be called in a thread."""

    def __init__(self, private_key: rsa.RSAPrivateKey) -> None:
        self._private_key = private_key
        self.public_pem = private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def new(cls) -> Self:
        """Make a key of 2,048 bits, as servers do."""
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS))

    def decrypt(self, ciphertext: bytes) -> bytes | None:
        """Return the bytes that the client encrypted; None if they were not encrypted with this key."""
        try:
            return self._private_key.decrypt(ciphertext, _PADDING)
        except ValueError:
            return None


class ServerKey:
    """A server's public key, which was given to us beforehand: a client encrypts its password with it."""

    def __init__(self, public_key: rsa.RSAPublicKey) -> None:
        self._public_key = public_key

    @classmethod
    def from_pem(cls, data: bytes) -> Self:
        """Read a key. Raises: ValueError for what is no RSA key of 2,048 bits or more in PEM form."""
        try:
            key = load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("no public key in PEM form") from None
        if not isinstance(key, rsa.RSAPublicKey):
            raise ValueError("a public key of another kind than RSA")
        if key.key_size < KEY_BITS:
            raise ValueError(f"an RSA key of {key.key_size} bits, servers make {KEY_BITS}")
        return cls(key)

    def encrypt(self, data: bytes, scramble: bytes) -> bytes | None:
        """Return the cipher of `data` under the server's challenge; None if it is longer than a block. It takes a millisecond."""
        mask = scramble * (len(data) // len(scramble) + 1)
        try:
            return self._public_key.encrypt(bytes(a ^ b for a, b in zip(data, mask, strict=False)), _PADDING)
        except ValueError:
            return None
