"""Kinds of rows in the ledger that more than their writer must know: readers of an archive need nothing that only writes it."""

from typing import Final

CATALOG_SET_ASIDE: Final = "catalog_set_aside"
"""A catalog that cannot be read was kept under another name, and a new one was made."""
BLOCK_SUMS: Final = "block_sums"
"""Records of NAME.sum or NAME.sum2 are damaged or not there; the file itself may well be what was archived."""
DAMAGED: Final = "damaged"
"""A file is not what was archived."""
SOUND_AGAIN: Final = "sound_again"
"""A file that was damaged is what was archived."""
PURGED: Final = "purged"
"""A file was removed as asked."""
FILE_MISSING: Final = "file_missing"
"""A file that the archive held is not there any more."""
