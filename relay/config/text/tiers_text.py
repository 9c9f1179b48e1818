"""`[archive.tiers]` and related sections: settings that contradict each other, or would have no effect; on the raw text."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from relay.config.text.amounts import checked_time, time_s
from relay.config.text.passwords import CREDENTIALS
from relay.config.text.problems import Findings, Wrong

_TO_BUCKET: Final = ("object_after", "cold_bytes")
_LIMITS: Final = ("cold_after", "hot_bytes", *_TO_BUCKET)
_FORMS: Final = ("file", "env", "credential")


def check_tiers(data: Mapping[str, Any], findings: Findings) -> None:
    """Find rules without a bucket, rules that contradict each other, keys that are not available."""
    archive = data.get("archive")
    if not isinstance(archive, dict):
        return
    tiers, bucket = archive.get("tiers"), archive.get("bucket")
    if isinstance(tiers, dict):
        _check_rules(tiers, isinstance(bucket, dict), findings)
    if isinstance(bucket, dict):
        _check_bucket(bucket, findings)
    elif "mirror" in archive:
        findings.problem("archive.mirror", "there is no bucket", "Write [archive.bucket], or leave this out")
    encryption = archive.get("encryption")
    if isinstance(encryption, dict):
        _check_keys(encryption, findings)


def _check_rules(tiers: Mapping[str, Any], has_bucket: bool, findings: Findings) -> None:
    # Files that a mirror copies, or that a restore has left in the bucket, are packed and read by these too.
    used = _LIMITS if not has_bucket else (*_LIMITS, "level", "read_cache")
    if not any(key in tiers for key in used):
        what = "there is no rule in it, so nothing would ever be moved"
        findings.problem(
            "archive.tiers", what, "Write cold_after, hot_bytes, object_after or cold_bytes, or leave it out"
        )
    for key in _TO_BUCKET:
        if key in tiers and not has_bucket:
            findings.problem(f"archive.tiers.{key}", "there is no bucket", "Write [archive.bucket], or leave this out")
    cold, objects = _seconds(tiers.get("cold_after")), _seconds(tiers.get("object_after"))
    if cold is not None and objects is not None and objects < cold:
        what = f'"{tiers["object_after"]}" is shorter than cold_after = "{tiers["cold_after"]}"'
        findings.problem(
            "archive.tiers.object_after", what, "Write a longer one: a file is packed before it goes to the bucket"
        )


def _check_bucket(bucket: Mapping[str, Any], findings: Findings) -> None:
    if "secret_key_file" in bucket and "secret_key_credential" in bucket:
        what = "the secret has two places"
        findings.problem("archive.bucket.secret_key_file", what, "Write secret_key_file or secret_key_credential")
    for key in ("secret_key_file", "credentials_file"):
        path = bucket.get(key)
        if isinstance(path, str) and not os.access(path, os.R_OK):
            findings.problem(
                f"archive.bucket.{key}", f"{path} cannot be read", "Name a file that the relay's user may read"
            )


def _check_keys(encryption: Mapping[str, Any], findings: Findings) -> None:
    keys = encryption.get("key")
    ids: set[str] = set()
    for number, key in enumerate(keys if isinstance(keys, list) else (), start=1):
        if not isinstance(key, dict):
            continue
        place = f"archive.encryption.key#{number}"
        forms = [form for form in _FORMS if form in key]
        if len(forms) != 1:
            what = "has no place" if not forms else f"has {len(forms)} places"
            findings.problem(place, what, "Write one of file, env and credential")
        elif (why := _unreadable(key, forms[0])) is not None:
            findings.problem(
                f"{place}.{forms[0]}", why, "`openssl rand -hex 32` makes a key; name it for a user who may read it"
            )
        if isinstance(key.get("id"), str):
            if key["id"] in ids:
                findings.problem(f"{place}.id", f'"{key["id"]}" is another key too', "Give each key an id of its own")
            ids.add(key["id"])
    active = encryption.get("active")
    if isinstance(active, str) and active not in ids:
        what = f'"{active}" is no key of this file'
        findings.problem("archive.encryption.active", what, "Write the id of a [[archive.encryption.key]]")


def _unreadable(key: Mapping[str, Any], form: str) -> str | None:
    value = key[form]
    if not isinstance(value, str):
        return None
    if form == "env":
        return None if value in os.environ else f"the variable {value} is not set"
    if form == "credential":
        directory = os.environ.get(CREDENTIALS)
        if directory is None:
            return f"{CREDENTIALS} is not set: systemd gives it to a service with LoadCredential="
        value = str(Path(directory) / value)
    return None if os.access(value, os.R_OK) else f"{value} cannot be read"


def _seconds(text: object) -> float | None:
    try:
        return time_s(checked_time(text)) if isinstance(text, str) else None
    except Wrong:
        return None
