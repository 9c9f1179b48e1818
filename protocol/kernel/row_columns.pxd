cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from protocol.kernel.batch_texts cimport BatchTexts
from protocol.kernel.event_facts cimport event_finding, is_transaction
from protocol.kernel.gtid_text cimport GtidText
from protocol.kernel.inference cimport Inference
from protocol.kernel.native cimport copy_bytes, load16, load32
from protocol.kernel.row_values cimport RowValues
from protocol.kernel.tables cimport TableMaps

cdef class RowColumns:
    cdef readonly int64_t capacity
    cdef readonly int64_t rows
    cdef readonly int64_t findings
    cdef readonly int64_t timestamp
    cdef readonly int64_t open_start
    cdef readonly int64_t open_stop
    cdef readonly int64_t opened_at
    cdef readonly object asked_table
    cdef readonly int64_t asked_position
    cdef bint asks
    cdef bint makes_before, makes_after, makes_statement, makes_gtid
    cdef dict buffers
    cdef Inference inference
    cdef TableMaps tables
    cdef RowValues values
    cdef GtidText gtid
    cdef bint mariadb
    # filters
    cdef int64_t time_from, time_to
    cdef int operations
    # plans
    cdef dict plan_numbers
    cdef int64_t plan_slot
    cdef object asked_columns
    cdef bytes asked_widths
    cdef bytes asked_key
    cdef int32_t[::1] plan_schemas
    cdef int32_t[::1] plan_tables
    # where the stream stands
    cdef int64_t next_row
    cdef bint entered
    cdef bint in_group
    cdef bint stray
    cdef int opening
    cdef const uint8_t[::1] opened_rows
    cdef int64_t opened_size
    # the group
    cdef int64_t group_start
    cdef int64_t ordinal
    cdef int64_t server_id
    cdef uint8_t[::1] statement
    cdef int64_t statement_size
    cdef bint has_statement
    cdef int64_t statement_index
    cdef int64_t gtid_index
    # the event
    cdef int64_t position, end, time
    cdef int event_fault
    cdef bint fault_shown
    cdef bint rows_begun
    cdef int64_t row_at
    cdef int64_t row_plan
    cdef int64_t before_present, after_present, before_end, after_end
    cdef int operation
    cdef bint partial
    cdef int finding
    cdef int64_t finding_position
    # what the last walk lacked
    cdef bint lacks_tables, lacks_images, lacks_statement
    cdef int64_t statement_lacking
    # the batch
    cdef int64_t before_room, after_room
    cdef int64_t before_used, after_used
    cdef bint skips_row
    cdef BatchTexts schema_texts, table_texts, statement_texts, gtid_texts
    cdef int64_t[::1] transaction_out, row_out, position_out, end_out, time_out, server_out, finding_position_out
    cdef uint8_t[::1] operation_out, finding_out
    cdef int32_t[::1] schema_out, table_out, statement_out, gtid_out, before_out, after_out
    cdef uint8_t[::1] schema_valid, table_valid, statement_valid, gtid_valid, before_valid, after_valid
    cdef uint8_t[::1] before_data, after_data

    @cython.locals(i=cython.int)
    cpdef begin_file(self, bytes post_lengths)
    @cython.locals(i=int64_t)
    cpdef begin_batch(self)
    cdef void begin_group(self, int64_t position) noexcept nogil
    @cython.locals(view=cython.uchar[::1], rows=int64_t[::1], status=cython.int)
    cpdef int take(self, buf, int64_t base, table, int64_t count) except -1
    @cython.locals(view=cython.uchar[::1], status=cython.int)
    cpdef int opened_events(self, buf, int64_t start, int64_t stop) except -1
    cpdef bint resolve(self, int status) except -1
    cpdef make_room(self)
    @cython.locals(
        r=int64_t, position=int64_t, t=cython.int, info=int64_t, boundary=cython.int, kind=cython.int, opens=cython.bint,
        at=int64_t, stop=int64_t, status=cython.int
    )
    cdef int walk(self, const uint8_t* p, int64_t have, int64_t base, const int64_t* table, int64_t count) noexcept nogil
    @cython.locals(length=int64_t, at=int64_t, status=cython.int)
    cdef int walk_opened(self, const uint8_t* p, int64_t start, int64_t stop) noexcept nogil
    cdef int take_event(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(slot=int64_t)
    cdef int take_map(self, const uint8_t* p, int64_t body, int64_t stop) noexcept nogil
    cdef int take_statement(self, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(rows=int64_t, status=cython.int, flags=cython.int)
    cdef int take_rows(self, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(mark=int64_t, wanted=cython.bint)
    cdef int begin_rows(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int t) noexcept nogil
    @cython.locals(status=int64_t)
    cdef int put_rows(self, const uint8_t* q, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(at=int64_t, partial=int64_t, options=int64_t, n=int64_t, bitmap=int64_t, present=int64_t)
    cdef int64_t put_row(self, const uint8_t* q, const uint8_t* p, int64_t stop) noexcept nogil
    @cython.locals(end=int64_t)
    cdef int64_t put_before(self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop) noexcept nogil
    @cython.locals(end=int64_t)
    cdef int64_t put_after(
        self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int64_t bitmap, int64_t present, int64_t partial
    ) noexcept nogil
    cdef int64_t pass_image(
        self, const uint8_t* q, const uint8_t* p, int64_t at, int64_t stop, int64_t bitmap, int64_t present
    ) noexcept nogil
    @cython.locals(schema=int64_t, schema_end=int64_t, table=int64_t, table_end=int64_t, number=int64_t)
    cdef int64_t note_names(self) noexcept nogil
    cdef int64_t note_shared(self) noexcept nogil
    cdef void found(self, int finding) noexcept nogil
    cdef bint put_finding(self) noexcept nogil
    cdef void put_numbers(self, int64_t n, int operation, int finding, int64_t finding_position) noexcept nogil
    cdef void put_names(self, int64_t n) noexcept nogil
