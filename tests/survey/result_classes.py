"""The classes that a result may have, so that what is computed with it can be looked up."""

from typing import Final

from protocol.sql.survey.value_class import TEXTS, ValueClass
from tests.survey.asking import Answer

_BY_TYPE: Final = {
    "decimal": frozenset((ValueClass.DECIMAL,)),
    "double": frozenset((ValueClass.DOUBLE,)),
    "text": TEXTS,
    "bytes": frozenset((ValueClass.BYTES,)),
    "bit": frozenset((ValueClass.BIT,)),
    "date": frozenset((ValueClass.DATE, ValueClass.DATE_ZERO)),
    "datetime": frozenset((ValueClass.DATETIME, ValueClass.DATE_ZERO)),
    "time": frozenset((ValueClass.TIME,)),
    "year": frozenset((ValueClass.YEAR,)),
    "json": frozenset((ValueClass.JSON,)),
    "geometry": frozenset((ValueClass.GEOMETRY,)),
    "null": frozenset((ValueClass.NULL,)),
}
_LARGEST_SIGNED: Final = (1 << 63) - 1


def result_classes(answer: Answer) -> frozenset[ValueClass]:
    """Return all classes of the type of a result; of a whole number, the one of its value. NULL has those of its type too."""
    classes = _BY_TYPE.get(answer.kind, frozenset())
    if answer.value is None:
        return classes | {ValueClass.NULL}
    if answer.kind == "integer":
        number = int(answer.value)
        if number > _LARGEST_SIGNED:
            return frozenset((ValueClass.UNSIGNED,))
        return frozenset((ValueClass.NEGATIVE if number < 0 else ValueClass.INTEGER,))
    return classes
