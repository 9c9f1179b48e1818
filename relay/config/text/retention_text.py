"""`[retention]`: settings that contradict each other, or would have no effect; on the raw text."""

from collections.abc import Mapping
from typing import Any, Final

from relay.config.text.amounts import checked_time, time_s
from relay.config.text.problems import Findings, Wrong

_LIMITS: Final = ("keep_for", "keep_bytes", "min_free")


def check_retention(data: Mapping[str, Any], findings: Findings) -> None:
    """Find a section that removes nothing, a lower bound above the upper one, limits of what is switched off."""
    section = data.get("retention")
    if not isinstance(section, dict):
        return
    if not any(key in section for key in _LIMITS):
        what = "there is no limit in it, so nothing would ever be removed"
        findings.problem("retention", what, "Write keep_for, keep_bytes or min_free, or leave [retention] out")
    if "keep_at_least" in section and "keep_for" in section:
        least, longest = _seconds(section["keep_at_least"]), _seconds(section["keep_for"])
        if least is not None and longest is not None and least > longest:
            what = f'"{section["keep_at_least"]}" is longer than keep_for = "{section["keep_for"]}"'
            findings.problem("retention.keep_at_least", what, "Write a shorter one, or a longer keep_for")
    if "keep_at_least" in section and not {"keep_bytes", "min_free"} & section.keys():
        what = "there is neither keep_bytes nor min_free, from which it would keep anything"
        findings.problem("retention.keep_at_least", what, "Leave it out, or write one of them")
    if section.get("keep_for_replicas") is False and "forget_replicas_after" in section:
        what = "with keep_for_replicas = false nothing is kept for replicas that are away"
        findings.problem("retention.forget_replicas_after", what, "Leave it out, or write keep_for_replicas = true")


def _seconds(text: object) -> float | None:
    try:
        return time_s(checked_time(text)) if isinstance(text, str) else None
    except Wrong:
        return None
