"""The image's Python packages as a bill of materials, CycloneDX 1.6 in JSON: python3 sbom.py > sbom.cdx.json

It lists the packages installed beside the Python that runs it, by their own metadata, with the standard library alone and without
network.
"""

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from typing import Any

_MAIN = "binlog-relay"
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")


def bill(installed: list[Distribution]) -> dict[str, Any]:
    """Return the document of these packages; its subject is `binlog-relay`."""
    named = {_plain(one.metadata["Name"]): one for one in installed}
    main = named.pop(_MAIN)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(_MAIN, main), "type": "application"}},
        "components": [_component(name, one) for name, one in sorted(named.items())],
        "dependencies": [
            {
                "ref": _purl(name, one),
                "dependsOn": sorted(_purl(need, named[need]) for need in _needs(one) if need in named),
            }
            for name, one in sorted({**named, _MAIN: main}.items())
        ],
    }


def _component(name: str, one: Distribution) -> dict[str, Any]:
    licence = one.metadata.get("License-Expression")
    found = {
        "type": "library",
        "name": name,
        "version": one.version,
        "purl": _purl(name, one),
        "bom-ref": _purl(name, one),
    }
    return {**found, **({"licenses": [{"expression": licence}]} if licence else {})}


def _purl(name: str, one: Distribution) -> str:
    return f"pkg:pypi/{name}@{one.version}"


def _needs(one: Distribution) -> set[str]:
    """Return the requirements without extras: their packages are listed, without the package that requires them."""
    return {
        _plain(match[0]) for text in one.requires or () if "extra ==" not in text and (match := _REQUIRED.match(text))
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    json.dump(bill(list(distributions())), sys.stdout, indent=1)
    sys.stdout.write("\n")
