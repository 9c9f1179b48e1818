"""What is started as a copy of a process that has imported the relay is what `python -m relay` starts."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.relay_template import RelayTemplate, offered, template_for, withheld

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def template() -> Iterator[RelayTemplate]:
    made = RelayTemplate()
    yield made
    made.close()


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["events", "tests/corpus/absent"], ["run", "--config", "/absent"], ["view", "find", "x"], ["no"]],
)
def test_it_prints_and_ends_as_a_process_of_its_own_does(template: RelayTemplate, arguments: Sequence[str]) -> None:
    copied = template.run(arguments, dict(os.environ), 20)
    alone = subprocess.run(
        [sys.executable, "-m", "relay", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (copied.returncode, copied.stdout, copied.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_it_has_the_environment_that_it_is_given(template: RelayTemplate, tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text(
        '[source]\nhost = "127.0.0.1"\nuser = "u"\npassword_env = "SECRET_OF_TEST"\n[archive]\ndir = "archive"\n'
    )
    config.chmod(0o600)
    told = template.run(["check-config", "--config", str(config)], dict(os.environ), 20)
    assert "SECRET_OF_TEST" in told.stderr
    known = template.run(["check-config", "--config", str(config)], {**os.environ, "SECRET_OF_TEST": "x"}, 20)
    assert "SECRET_OF_TEST" not in known.stderr


def test_one_that_is_killed_says_by_what_and_goes_with_its_template(tmp_path: Path) -> None:
    template = RelayTemplate()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it waits for a writer
    with (tmp_path / "log").open("wb") as log:
        one, other = (
            template.start(["events", str(pipe)], dict(os.environ), [log.fileno(), log.fileno()]) for _ in range(2)
        )
    assert one.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.01)
    one.kill()
    assert one.wait() == -signal.SIGKILL
    template.close()
    assert other.wait(20) == -signal.SIGKILL


def test_it_is_not_for_what_an_interpreter_reads_at_its_start() -> None:
    with offered():
        assert template_for(["SECRET"]) is not None
        assert template_for(["PYTHONPATH"]) is None
        with withheld():
            assert template_for([]) is None
