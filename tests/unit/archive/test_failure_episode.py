"""A disk that is full is announced once, not by each retry."""

import errno

from relay.archive.write.failure_episode import QUIET_S, SUBSTANTIAL_BYTES, FailureEpisode

FULL = errno.ENOSPC


def failed_once() -> FailureEpisode:
    episode = FailureEpisode()
    assert episode.is_news(FULL, 1000, 50.0)
    return episode


def test_retries_that_gain_a_little_each_are_not_news() -> None:
    episode = failed_once()
    assert not any(episode.is_news(FULL, 1000 + n * (8 << 20), 50.0 + n * 30.0) for n in range(1, 100))


def test_retries_that_gain_nothing_are_not_news_however_rarely_the_source_sends() -> None:
    episode = failed_once()
    assert not episode.is_news(FULL, 1000, 50.0 + 100 * QUIET_S)


def test_a_failure_after_much_was_archived_is_news() -> None:
    episode = failed_once()
    assert episode.is_news(FULL, 1000 + SUBSTANTIAL_BYTES, 51.0)


def test_a_failure_after_a_healthy_while_is_news() -> None:
    episode = failed_once()
    assert episode.is_news(FULL, 1001, 50.0 + QUIET_S)


def test_another_error_is_news_once_and_the_first_one_is_not_news_again_behind_it() -> None:
    episode = failed_once()
    assert [episode.is_news(number, 1000, 60.0) for number in (errno.EIO, FULL, errno.EIO)] == [True, False, False]
