"""The expressions of a construct: each combination of classes of arguments, several values of each."""

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from protocol.sql.survey.value_class import ValueClass, class_of_text
from tests.survey.constructs import Construct
from tests.survey.values import Value, values_by_class

_OF_A_COMBINATION: Final = {0: 1, 1: 60, 2: 4, 3: 1}
"""How many expressions are asked for each combination of classes, by the number of arguments."""
_USUAL: Final = tuple(
    ValueClass(one)
    for one in (
        "null", "integer", "negative", "decimal", "double", "text empty", "text number", "text date", "text date column", "text time",
        "text offset", "text no date", "text other", "text wide", "date", "datetime", "date zero",
    )
)  # fmt: skip
"""The classes of which every combination of three arguments is asked for; each other class at each place is with `_BASE`."""
_EMPTY: Final = ("''", "x''", "_binary''", "varchar_empty", "set_none")
_SMALL: Final = (ValueClass.NULL, ValueClass.INTEGER, ValueClass.NEGATIVE, ValueClass.TEXT_EMPTY, ValueClass.TEXT_OTHER)
_BASE: Final = (ValueClass.INTEGER, ValueClass.TEXT_NUMBER, ValueClass.TEXT_OTHER)
_OF_FOUR: Final = (
    ValueClass.NULL,
    ValueClass.INTEGER,
    ValueClass.NEGATIVE,
    ValueClass.TEXT_EMPTY,
    ValueClass.TEXT_NUMBER,
    ValueClass.TEXT_OTHER,
    ValueClass.TEXT_WIDE,
)
_EVERY_COMBINATION: Final = ("BETWEEN",)
"""Constructs of which all combinations of all classes are asked for."""


class Expression(NamedTuple):
    """An expression, and the classes of its arguments."""

    construct: str
    classes: tuple[ValueClass, ...]
    text: str


def expressions_of(construct: Construct, each: int = 0) -> Iterator[Expression]:
    """Return them in the order of their classes, always the same. `each`: how many of a combination of two arguments; 0: four."""
    for combination in _combinations(construct, tuple(values_by_class())):
        yield from _of_combination(construct, combination, each)


def sample(constructs: Sequence[Construct], count: int, seed: str) -> Iterator[Expression]:
    """Return some of the expressions that are asked of any of the constructs. The same seed gives the same ones."""
    chosen = random.Random(seed)
    combinations = {one: list(_combinations(one, tuple(values_by_class()))) for one in constructs if one.arity < 3}
    for construct in chosen.choices(list(combinations), k=count):
        yield from itertools.islice(_of_combination(construct, chosen.choice(combinations[construct]), 1), 1)


def _of_combination(construct: Construct, combination: tuple[ValueClass, ...], each: int) -> Iterator[Expression]:
    by_place = _values(construct)
    chosen = random.Random(f"{construct.name}{combination}")
    values = [by_place[place][kind] for place, kind in enumerate(combination)]
    selected = _selected(values, construct, chosen, each) if construct.arity < 3 else _fixed(values, construct)
    for arguments, form in selected:
        if (construct.name == "REPEAT()" and _is_slow(*arguments[:2])) or _crashes(construct, arguments):
            continue
        yield Expression(construct.name, combination, form.format(*(one.text for one in arguments)))


def _crashes(construct: Construct, arguments: tuple[Value, ...]) -> bool:
    """Return whether MySQL 5.6 crashes at the expression, so that no binlog has it."""
    return construct.name == "NAME_CONST()" and arguments[0].text.startswith(("DATE '", "TIME '", "TIMESTAMP '"))


def _is_slow(text: Value, count: Value) -> bool:
    """Return whether servers may repeat an empty text 2^31 times, which takes seconds."""
    return text.text in _EMPTY and (count.kind not in _SMALL or count.text == "bigint_max")


def _values(construct: Construct) -> list[dict[ValueClass, tuple[Value, ...]]]:
    """Return the values for each argument."""
    by_place = [dict(values_by_class()) for _ in range(construct.arity)]
    for place, texts in construct.further:
        if place < construct.arity:
            for text in texts:
                kind = _class_of_further(text)
                by_place[place][kind] = (Value(kind, text), *by_place[place].get(kind, ()))
    return by_place


def _combinations(construct: Construct, every: tuple[ValueClass, ...]) -> Iterator[tuple[ValueClass, ...]]:
    if construct.arity < 3 or construct.name in _EVERY_COMBINATION:
        yield from itertools.product(every, repeat=construct.arity)
    elif construct.arity == 3:
        yield from itertools.product(_USUAL, repeat=3)
        for place in range(3):
            sides = [tuple(one for one in every if one not in _USUAL) if at == place else _BASE for at in range(3)]
            yield from itertools.product(*sides)
    else:
        yield from itertools.product(_OF_FOUR, repeat=construct.arity)


def _selected(
    values: list[tuple[Value, ...]], construct: Construct, chosen: random.Random, each: int
) -> Iterator[tuple[tuple[Value, ...], str]]:
    """Return some of the combinations of values, as many with columns as with literals, and in turn the forms of the construct."""
    wanted = each if each and construct.arity == 2 else _OF_A_COMBINATION.get(construct.arity, 1)
    every = 1
    for one in values:
        every *= len(one)
    if every * len(construct.forms) <= wanted * max(1, len(construct.forms) // 4):
        yield from itertools.product(itertools.product(*values), construct.forms)
        return
    seen = set()
    first = chosen.randrange(len(construct.forms))
    for at in range(max(wanted, min(2 * wanted, len(construct.forms)))):
        columns = [bool(at >> place & 1) for place in range(len(values))]
        arguments = tuple(
            chosen.choice([value for value in one if value.is_column == is_column] or one)
            for one, is_column in zip(values, columns, strict=True)
        )
        form = construct.forms[(first + at) % len(construct.forms)]
        if (arguments, form) not in seen:
            seen.add((arguments, form))
            yield arguments, form


def _fixed(values: list[tuple[Value, ...]], construct: Construct) -> Iterator[tuple[tuple[Value, ...], str]]:
    """Return combinations for three arguments and more, where a class at a place has one column and one literal: what differs by
    value differs for all combinations, and rows stay few."""
    for at in range(2 if construct.name in _EVERY_COMBINATION else 1):
        arguments = []
        for place, one in enumerate(values):
            is_column = (place == 0) != bool(at)
            known = [value for value in one if value.is_column == is_column] or list(one)
            arguments.append(random.Random(f"{construct.name}{place}{one[0].kind}{at}").choice(known))
        yield tuple(arguments), construct.forms[at % len(construct.forms)]


def _class_of_further(text: str) -> ValueClass:
    if text.isdigit():
        return ValueClass.INTEGER
    if text.startswith("x'"):
        return ValueClass.HEX
    return class_of_text(text.strip("'")) if text.startswith("'") else ValueClass.BYTES
