"""The hashes that real servers store for the password "pass word", read from their mysql.user."""

from typing import Final

PASSWORD: Final = "pass word"

# MariaDB 10.11.18: CREATE USER n IDENTIFIED VIA mysql_native_password USING PASSWORD('pass word').
NATIVE: Final = "*EDBBEA7F4E7B5D8B0BC8D7AC5D1936FB7DA10611"
# MySQL 9.7.4: CREATE USER u IDENTIFIED WITH caching_sha2_password BY 'pass word'; HEX() of it. 10,000 rounds.
CACHING_SHA2: Final = (
    "0x244124303041241571443A177F7A486F364F780C4C384B620C254F30394831573673373962475733615A7356726341456C4C3241616E6D4B"
    "4E71654D554B6A2F5A377A357841"
)
# MariaDB 10.11.18: CREATE USER u IDENTIFIED VIA ed25519 USING PASSWORD('pass word').
ED25519: Final = "Q+UD4+bwlb5q7oxvDyDgE+sUylTIpZvuKbBmZc3n0bc"
