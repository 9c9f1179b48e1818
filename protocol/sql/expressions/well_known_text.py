"""Well-known text of geometries: literals that all servers read alike. Source: OGC 06-103r4, 7.2; tried on 5.6.24, 10.11.19, 9.7.4."""

import re
from typing import Final

_NUMBER: Final = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
_POINT: Final = rf"\s*+{_NUMBER}\s++{_NUMBER}\s*+"
_POINTS: Final = rf"\((?>(?:{_POINT},)*){_POINT}\)"
_RINGS: Final = rf"\(\s*+{_POINTS}(?>(?:\s*+,\s*+{_POINTS})*)\s*+\)"
_SHAPES: Final = {
    "POINT": rf"\({_POINT}\)",
    "LINESTRING": _POINTS,
    "POLYGON": _RINGS,
    "MULTIPOINT": rf"(?:{_POINTS}|\(\s*+\({_POINT}\)(?>(?:\s*+,\s*+\({_POINT}\))*)\s*+\))",
    "MULTILINESTRING": _RINGS,
    "MULTIPOLYGON": rf"\(\s*+{_RINGS}(?>(?:\s*+,\s*+{_RINGS})*)\s*+\)",
}
_WRITTEN: Final = re.compile(
    "|".join(rf"{kind}\s*+(?P<{kind}>{shape})" for kind, shape in _SHAPES.items()), re.IGNORECASE | re.ASCII
)
_COLLECTION: Final = re.compile(r"GEOMETRYCOLLECTION\s*+\(", re.IGNORECASE | re.ASCII)
_COMMA: Final = re.compile(r"\s*+,\s*+", re.ASCII)
_BLANKS: Final = " \t\n\r\f\v"
_LISTS: Final = re.compile(r"\(([^()]++)\)")
_LONGEST: Final = 1 << 16
_LEAST: Final = {"LINESTRING": 2, "MULTILINESTRING": 2, "POLYGON": 4, "MULTIPOLYGON": 4}
"""The points of a line or ring."""
_READERS: Final = {
    "GEOMFROMTEXT": "", "GEOMETRYFROMTEXT": "", "POINTFROMTEXT": "POINT", "LINEFROMTEXT": "LINESTRING",
    "LINESTRINGFROMTEXT": "LINESTRING", "POLYFROMTEXT": "POLYGON", "POLYGONFROMTEXT": "POLYGON",
}  # fmt: skip


def reads_well_known_text(function: str, text: str) -> bool:
    """Return whether the function (in upper case), called with this text alone, gives the same geometry at all servers."""
    kind = _READERS.get(function.removeprefix("ST_"))
    if kind is None or len(text) > _LONGEST:
        return False
    text = text.strip(_BLANKS)
    collection = _COLLECTION.match(text)
    if collection is not None:
        return not kind and text.endswith(")") and _are_shapes(text[collection.end() : -1].strip(_BLANKS))
    shape = _shape_at(text, 0)
    return shape is not None and shape.end() == len(text) and kind in ("", shape.lastgroup)


def _are_shapes(text: str) -> bool:
    at = 0
    while (shape := _shape_at(text, at)) is not None:
        at = shape.end()
        if at == len(text):
            return True
        comma = _COMMA.match(text, at)
        if comma is None:
            return False
        at = comma.end()
    return False


def _shape_at(text: str, start: int) -> re.Match[str] | None:
    """Return the shape that begins there, if its lines are long enough and its rings are closed."""
    written = _WRITTEN.match(text, start)
    if written is None or written.lastgroup is None:
        return None
    least = _LEAST.get(written.lastgroup, 1)
    for found in _LISTS.finditer(written[0]):
        points = [tuple(float(number) for number in point.split()) for point in found[1].split(",")]
        if len(points) < least or (least > 2 and points[0] != points[-1]):
            return None
    return written
