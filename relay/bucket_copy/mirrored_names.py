"""The files of an archive that go to the bucket besides the binlogs: all that cannot be derived from them."""

from typing import Final

from relay.archive.storage.files import (
    ACCEPTED_NAME,
    GAP_NAME,
    GTX_SUFFIX,
    IDX_SUFFIX,
    KNOWN_REPLICAS_NAME,
    LEDGER_TEXT_NAME,
    REGISTRATION_NAME,
    SCHEMA_NAME,
    SOURCE_GTIDS_NAME,
    SOURCE_NAME,
    SOURCE_SETTINGS_NAME,
    SUM_SUFFIXES,
    UUID_NAME,
)

SMALL_FILES: Final = (
    LEDGER_TEXT_NAME,
    UUID_NAME,
    REGISTRATION_NAME,
    SOURCE_GTIDS_NAME,
    SOURCE_SETTINGS_NAME,
    SOURCE_NAME,
    SCHEMA_NAME,
    KNOWN_REPLICAS_NAME,
    GAP_NAME,
    ACCEPTED_NAME,
)
"""The ledger, which has the source's identity, the origin of the generation and the decisions about views; the relay's identity; the
source's reports about itself; the known replicas; accepted gaps."""
BESIDE: Final = (IDX_SUFFIX, GTX_SUFFIX, *SUM_SUFFIXES)
"""The suffixes of each binlog's indexes."""
