"""What the image and the tests install: each version with hashes, as pyproject.toml allows it; and the image's bill of materials."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(name: str) -> dict[str, list[Requirement]]:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found: dict[str, list[Requirement]] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        words, *hashes = line.split(" --hash=")
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", one.strip()) for one in hashes), words
        one = Requirement(words)
        found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def wanted(*extras: str) -> list[Requirement]:
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    return [one for text in texts if (one := Requirement(text)).name != "binlog-relay"]


@pytest.mark.parametrize(
    ("name", "extras"), [(LOCKS[0], ()), (LOCKS[1], ("audit", "bucket", "feed", "dev"))], ids=LOCKS
)
def test_the_lock_is_of_this_pyproject(name: str, extras: tuple[str, ...]) -> None:
    """If not: deploy/lock"""
    found = locked(name)
    for one in wanted(*extras):
        versions = [Version(next(iter(held.specifier)).version) for held in found.get(canonicalize_name(one.name), ())]
        assert versions and all(one.specifier.contains(version) for version in versions), f"{one}: run deploy/lock"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_registry(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text and "index" not in text


def test_the_image_has_the_versions_of_the_tests() -> None:
    tested = {name: {str(one.specifier) for one in held} for name, held in locked(LOCKS[1]).items()}
    for name, held in locked(LOCKS[0]).items():
        assert {str(one.specifier) for one in held} <= tested[name]


def test_the_bill_of_the_image_names_each_package_and_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "deploy/container/sbom.py"], capture_output=True, check=True, timeout=60
    )
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "binlog-relay"
    components = {one["name"]: one for one in bill["components"]}
    assert components["aiohttp"]["purl"] == f"pkg:pypi/aiohttp@{components['aiohttp']['version']}"
    needs = {one["ref"].partition("@")[0]: one["dependsOn"] for one in bill["dependencies"]}
    assert components["pynacl"]["purl"] in needs["pkg:pypi/binlog-relay"]
    references = {one["bom-ref"] for one in (*bill["components"], bill["metadata"]["component"])}
    assert {ref for found in needs.values() for ref in found} <= references
