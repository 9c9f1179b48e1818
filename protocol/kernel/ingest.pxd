cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from protocol.kernel.codes cimport *
from protocol.kernel.event_table cimport EventTable
from protocol.kernel.stream_format cimport StreamFormat
from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport (
    crc32_of, flags_effect, load16, load24, load32, load64, move_bytes, native_setup, store32, store64
)
from protocol.kernel.stream_notes cimport StreamNotes

@cython.final
cdef class Ingest:
    # what the owner chose
    cdef readonly bint packets
    cdef readonly bint stamp
    cdef readonly int prefix
    cdef public bint announced_checksum
    cdef public bint old_format
    # the place in the stream
    cdef readonly int64_t position
    cdef readonly int64_t boundary
    cdef readonly int64_t group_start
    cdef readonly bint in_event
    cdef readonly int checksum
    cdef StreamFormat format
    cdef readonly bint cut_group
    cdef public int sequence
    cdef Inference inference
    cdef bint expect_format
    cdef bint skip_format
    # a big event that is streamed
    cdef int64_t event_start
    cdef int64_t event_left
    cdef int64_t chunk_left
    cdef bint more_chunks
    cdef uint32_t event_crc
    cdef uint32_t event_effect
    cdef bint group_due
    cdef bint ack_due
    cdef readonly int64_t acks
    cdef readonly int64_t ack_position
    # what one feed reports
    cdef readonly int64_t produced
    cdef readonly int64_t consumed
    cdef readonly int64_t packet_start
    cdef readonly int64_t packet_stop
    cdef readonly int64_t rotate_position
    cdef readonly bytes rotate_name
    cdef int64_t rotate_at
    cdef int64_t rotate_end
    cdef int64_t expected
    cdef int64_t got
    cdef readonly int status
    cdef readonly int bad_type
    # the newest of the events that take_control saw
    cdef bint keep
    cdef bint artificial
    cdef int64_t covered
    # counts
    cdef readonly int64_t events
    cdef readonly int64_t groups
    cdef readonly int64_t violations
    cdef readonly int64_t unknown
    cdef readonly int64_t heartbeats
    cdef readonly int64_t position_jumps
    cdef readonly int64_t disagreements
    cdef readonly int64_t late_damage
    cdef readonly uint32_t timestamp
    cdef readonly uint32_t first_timestamp
    # index entries
    cdef uint8_t entries[24480]
    cdef int entry_count
    cdef int64_t entry_last
    cdef bint entry_due
    cdef bint entry_inside
    # violations and unknown types
    cdef StreamNotes notes
    cdef readonly int64_t definitions
    cdef int previous_type
    cdef int64_t previous_position
    # table
    cdef bint has_table
    cdef bint tolerant
    cdef public bint detailed
    cdef EventTable table

    @cython.locals(i=cython.int)
    cpdef begin_file(self, int64_t position, int64_t group_start=*)
    @cython.locals(view=cython.uchar[::1], status=cython.int)
    cpdef int feed(self, buf, int64_t start, int64_t stop) except -1
    @cython.locals(
        r=int64_t, o=int64_t, pos=int64_t, ev=int64_t, end=int64_t, length=int64_t, size=int64_t, covered=int64_t,
        log_pos=uint32_t, flags=uint32_t, t=cython.int, kind=cython.int,
        boundary=cython.int, arrived=cython.int, inferred=cython.int, status=cython.int, was_in=cython.bint,
        was_bad=cython.bint, violation=cython.bint, whole=cython.bint, crc_bad=cython.bint, crc_missing=cython.bint, crc_len=cython.int,
        stored=uint32_t, effect=uint32_t, at_boundary=cython.bint, packets=cython.bint, prefix=cython.int,
        keep=cython.bint, timestamp=uint32_t, info=int64_t, now_in=cython.bint, ack=cython.bint, jumped=cython.bint, malformed=cython.bint
    )
    cdef int walk(self, uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef bint breaks_chain(self, uint32_t log_pos, int64_t position, int64_t length) noexcept nogil
    cdef void note_event(self, int64_t position, int t, uint32_t timestamp) noexcept nogil
    cdef void end_packet(self, int64_t position, bint ack) noexcept nogil
    cdef int refuse(self, int status, int t, int64_t expected, int64_t got) noexcept nogil
    cdef int other_packet(self, const uint8_t* p, int64_t r, int64_t stop, int64_t size) noexcept nogil
    @cython.locals(flags=uint32_t, log_pos=uint32_t, status=cython.int)
    cdef int take_control(self, uint8_t* p, int64_t ev, int64_t length, int t) noexcept nogil
    cdef int pass_over(
        self, const uint8_t* p, int64_t ev, int t, int64_t covered, uint32_t log_pos, int64_t position
    ) noexcept nogil
    cdef void note_rotate(self, const uint8_t* p, int64_t ev, int64_t covered) noexcept nogil
    cdef void begin_stream(self, int64_t position, int64_t length, uint32_t effect) noexcept nogil
    @cython.locals(r=int64_t, o=int64_t, n=int64_t, stored=uint32_t, size=int64_t)
    cdef int stream(self, uint8_t* p, int64_t r, int64_t o, int64_t stop) noexcept nogil
    cdef void note_ack(self, int64_t position) noexcept nogil
    cdef void finish_event(self) noexcept nogil
    cdef void pass_boundary(self, int64_t position) noexcept nogil
    @cython.locals(at=int64_t)
    cdef void add_entry(self, int64_t position, int64_t group_start, uint32_t timestamp, bint at_boundary) noexcept nogil
    @cython.locals(view=cython.uchar[::1], p="uint8_t*")
    cpdef bint read_format(self, buf, int64_t start, int64_t stop) except? -1
    @cython.locals(status=cython.int)
    cdef int take_format(self, const uint8_t* p, int64_t at, int64_t length) noexcept nogil

cdef bint is_whole_transaction(int kind) noexcept nogil
