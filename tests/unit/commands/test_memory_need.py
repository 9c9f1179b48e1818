"""How much memory check-config says, and whether the limits that are shipped are not below it."""

import re
from pathlib import Path

import pytest

from relay.commands.memory_need import MemoryNeed
from relay.config import ConfigError, load_config

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
MIB = 1 << 20
CONFIG = """\
[source]
kind = "directory"
path = "binlogs"
[archive]
dir = "archive"
"""


def need(tmp_path: Path, more: str = "") -> MemoryNeed:
    file = tmp_path / "relay.toml"
    file.write_text(CONFIG + more)
    file.chmod(0o600)
    return MemoryNeed.of(load_config(file))


def test_the_budget_is_512_mib_unless_it_is_said(tmp_path: Path) -> None:
    assert need(tmp_path).budget_bytes == 512 * MIB
    assert need(tmp_path, '[memory]\nbudget = "2GiB"\n').budget_bytes == 2048 * MIB


@pytest.mark.parametrize("budget", ["100MiB", "1KiB", "lots"])
def test_a_budget_that_no_replica_could_ask_with_is_refused(tmp_path: Path, budget: str) -> None:
    with pytest.raises(ConfigError):
        need(tmp_path, f'[memory]\nbudget = "{budget}"\n')


def test_views_and_packed_binlogs_need_more(tmp_path: Path) -> None:
    plain = need(tmp_path).whole_bytes
    views = '[[view]]\nname = "a"\n[[view]]\nname = "b"\n'
    assert need(tmp_path, views).whole_bytes == plain + 2 * 192 * MIB
    assert need(tmp_path, '[archive.tiers]\ncold_after = "2d"\n').whole_bytes == plain + 256 * MIB


def test_the_limits_that_are_shipped_are_not_below_what_their_relay_needs(tmp_path: Path) -> None:
    plain = need(tmp_path)
    full = need(tmp_path, '[archive.tiers]\ncold_after = "2d"\n[[view]]\nname = "a"\n[[view]]\nname = "b"\n')
    unit = (DEPLOY / "systemd" / "binlog-relay.service").read_text()
    assert _mib(unit, r"^MemoryHigh=(\d+)M") >= full.high_bytes // MIB
    assert _mib(unit, r"^MemoryMax=(\d+)M") >= full.max_bytes // MIB
    compose = (DEPLOY / "container" / "compose" / "compose.yaml").read_text()
    assert _mib(compose, r"mem_limit: (\d+)m") >= plain.max_bytes // MIB
    pod = (DEPLOY / "kubernetes" / "statefulset.yaml").read_text()
    assert _mib(pod, r"limits:\n\s+memory: (\d+)Mi") >= plain.max_bytes // MIB


def _mib(text: str, pattern: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return int(found[1])
