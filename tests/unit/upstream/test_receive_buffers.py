"""The receive buffers that go round between the socket and the writer."""

from relay.upstream.stream.receive_buffers import ReceiveBufferPool


def test_the_pool_hands_out_as_many_buffers_as_it_has_and_then_none() -> None:
    pool = ReceiveBufferPool(2)
    first = pool.take()
    assert first is not None
    first.pending = 1
    second = pool.take()
    assert second is not None and second is not first
    second.pending = 1
    assert pool.take() is None


def test_a_buffer_comes_back_when_its_last_run_is_written() -> None:
    pool = ReceiveBufferPool(1)
    returned = []
    pool.on_return = lambda: returned.append(True)
    buffer = pool.take()
    assert buffer is not None
    buffer.pending = 2
    assert pool.take() is None
    buffer.run_written()
    assert not returned
    buffer.run_written()
    assert returned
    assert pool.take() is buffer


def test_the_buffer_in_use_is_not_handed_out_twice_when_its_runs_are_written() -> None:
    pool = ReceiveBufferPool(2)
    buffer = pool.take()
    assert buffer is not None
    buffer.pending = 1
    buffer.run_written()
    assert pool.take() is not buffer


def test_the_buffer_used_last_is_handed_out_first() -> None:
    pool = ReceiveBufferPool(3)
    buffers = [pool.take() for _ in range(3)]
    for buffer in buffers:
        assert buffer is not None
        buffer.pending = 1
    pool.take()
    for buffer in buffers:
        assert buffer is not None
        buffer.run_written()
    assert pool.take() is buffers[-1]


def test_a_buffer_that_was_put_back_is_free_again() -> None:
    pool = ReceiveBufferPool(1)
    buffer = pool.take()
    pool.put_back()
    assert pool.take() is buffer
