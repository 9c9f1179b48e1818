"""The check that an answer conforms to an OpenAPI document: the part of JSON Schema that ours uses."""

import itertools
from typing import Any


def differences(value: Any, schema: dict[str, Any], document: dict[str, Any], place: str = "$") -> list[str]:
    """Yield where and how `value` differs from `schema`."""
    if "$ref" in schema:
        return differences(value, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, place)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place}: {value!r} is none of {schema['enum']}"]
    if "oneOf" in schema:
        found = [differences(value, one, document, place) for one in schema["oneOf"]]
        return (
            []
            if sum(not one for one in found) == 1
            else [f"{place}: fits not exactly one of {len(found)}", *itertools.chain(*found)]
        )
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if _kind(value) not in kinds and not (_kind(value) == "integer" and "number" in kinds):
        return [f"{place}: {value!r} is no {kinds}"]
    wrong: list[str] = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            wrong += differences(item, schema["items"], document, f"{place}[{number}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        wrong += [f"{place}.{key}: is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            inner = known.get(key, schema.get("additionalProperties"))
            wrong += (
                [f"{place}.{key}: is not described"]
                if not inner
                else differences(item, inner, document, f"{place}.{key}")
            )
    return wrong


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]
