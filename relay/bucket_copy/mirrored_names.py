"""What of an archive goes to the bucket beside the binlogs: all that cannot be made from them."""

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
"""The ledger, which has the source's identity, the origin of the generation and what was decided of views; who the relay is; what the
source told of itself; which replicas there are; accepted gaps."""
BESIDE: Final = (IDX_SUFFIX, GTX_SUFFIX, *SUM_SUFFIXES)
"""Of files beside each binlog."""
