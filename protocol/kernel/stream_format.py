# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""The facts of a file's first event about the later ones: their checksum, their positions, their post-header lengths."""

import cython

from protocol.kernel.inference import Inference

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load32


class StreamFormat:
    """The content of the newest format description of a stream.

    `checksum` is that of the events after it: -1 before the first one, 0 none, 1 CRC32. `has_checksum_field`: it ends with 4 bytes
    for one itself. `loose_positions`: positions inside transactions are not the file's. `expected` and `got` are of a defect.
    """

    def __init__(self) -> None:
        self.checksum = -1
        self.has_checksum_field = False
        self.binlog_version = 4
        self.loose_positions = False
        self.created = self.server_id = 0
        self.expected = self.got = 0

    def take(self, p: Bytes, at: int, length: int, inference: Inference) -> int:
        """Read the event at `at`, a format description or Start_v3; `inference` gets the post-header lengths.

        Return NEED_MORE, or its defect as a status of `feed`: BAD_LENGTH, BAD_FORMAT.
        """
        if p[at + EVENT_TYPE_AT] == START_V3_EVENT:
            return self.take_start_v3(p, at, length, inference)
        return self.take_version_4(p, at, length, inference)

    def take_version_4(self, p: Bytes, at: int, length: int, inference: Inference) -> int:
        """Read a format description: version 2, server version 50, created 4, header length 1, post-header lengths.

        Servers that know checksums (MySQL >= 5.6.1, MariaDB >= 5.3) add the algorithm, 1 byte, and a CRC32, always. MariaDB's lists
        the types of MariaDB, from 160 on; its version may be any that the server is started with.
        """
        body = at + HEADER_SIZE
        if length < HEADER_SIZE + FORMAT_FIXED_SIZE + 1:
            self.got = length
            self.expected = HEADER_SIZE + FORMAT_FIXED_SIZE + 1
            return BAD_FORMAT
        version = load16(p, body)
        if version != 4:
            self.got = version
            self.expected = 4
            return BAD_FORMAT
        if p[body + FORMAT_FIXED_SIZE - 1] != HEADER_SIZE:
            self.got = p[body + FORMAT_FIXED_SIZE - 1]
            self.expected = HEADER_SIZE
            return BAD_FORMAT
        a = b = c = field = 0
        count = length - HEADER_SIZE - FORMAT_FIXED_SIZE
        mariadb = count >= ANNOTATE_ROWS_EVENT
        for i in range(FORMAT_VERSION_SIZE):
            k = p[body + 2 + i]
            if k == 0:
                break
            if 48 <= k <= 57:
                if field == 0:
                    a = a * 10 + (k - 48)
                elif field == 1:
                    b = b * 10 + (k - 48)
                else:
                    c = c * 10 + (k - 48)
            elif k == 46 and field < 2:
                field += 1
            else:
                break
        aware = mariadb or a > 5 or (a == 5 and (b > 6 or (b == 6 and c >= 1)))
        self.binlog_version = 4
        # Inside transactions 5.1.15 and 5.1.17 wrote positions within the transaction's cache; a MariaDB that has GTIDs, type 162, is
        # 10.0 or newer, whatever it calls itself
        self.loose_positions = count < MARIADB_GTID_EVENT + 1 + CHECKSUM_SIZE and (a < 5 or (a == 5 and b < 5))
        self.created = load32(p, at)
        self.has_checksum_field = False
        if aware:
            count -= 1 + CHECKSUM_SIZE
            if count < 1:
                self.got = length
                return BAD_FORMAT
            if p[at + length - CHECKSUM_SIZE - 1] > 1:
                self.got = p[at + length - CHECKSUM_SIZE - 1]
                self.expected = 1
                return BAD_FORMAT
            self.checksum = p[at + length - CHECKSUM_SIZE - 1]
            self.has_checksum_field = True
        else:
            self.checksum = 0
        self.server_id = load32(p, at + SERVER_ID_AT)
        inference.take_post_lengths(p, body + FORMAT_FIXED_SIZE, count)
        return NEED_MORE

    def take_start_v3(self, p: Bytes, at: int, length: int, inference: Inference) -> int:
        """Read the Start_v3 of a 4.0 or 4.1 server: version 2, server version 50, created 4.

        Its events have the header of 19 bytes, whose position is the event's start or, in a transaction, that of the whole; they have
        no checksum, and a Query has no status variables. 3.23's version 1 has other headers.
        """
        if length < HEADER_SIZE + START_V3_SIZE:
            self.got = length
            self.expected = HEADER_SIZE + START_V3_SIZE
            return BAD_LENGTH
        if load16(p, at + HEADER_SIZE) != 3:
            self.got = load16(p, at + HEADER_SIZE)
            self.expected = 3
            return BAD_FORMAT
        self.binlog_version = 3
        self.loose_positions = True
        self.checksum = 0
        self.has_checksum_field = False
        self.created = load32(p, at)
        self.server_id = load32(p, at + SERVER_ID_AT)
        inference.take_post_lengths(p, at, 0)
        inference.post_length[QUERY_EVENT] = QUERY_POST_3
        return NEED_MORE
