"""REGEXP in time that is linear in the length of text and pattern, for any pattern; and counted, as both are a client's.

It understands characters, `.`, `[...]` with ranges and classes such as `[:alpha:]`, `^`, `$`, `|`, parentheses, `*`, `+`, `?`, and a
backslash before any of them. Case does not matter. Counts in braces and references back are refused.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from protocol.errors import RelayError

_MOST_PATTERN: Final = 256
_MOST_TEXT: Final = 4096
_MOST_DEPTH: Final = 16
_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "alnum": str.isalnum,
    "space": str.isspace,
    "upper": str.isalpha,
    "lower": str.isalpha,
}
_SHORT: Final[dict[str, Callable[[str], bool]]] = {
    "d": str.isdigit,
    "s": str.isspace,
    "w": lambda one: one.isalnum() or one == "_",
}
# The limit of what a search remembers: a hostile pattern has a new set of states for each character.
_MOST_KNOWN: Final = 128
_MOST_WAYS: Final = 4096
_STEPS_A_STATE: Final = 6
Accepts = Callable[[str], bool]
Spend = Callable[[int], object]
"""The function is called with steps of work (a tenth of a microsecond each) before they are done, and may raise."""


class RegexpRefused(RelayError):
    """A pattern is malformed, or is not understood here."""


@dataclass(slots=True)
class _State:
    """A state of the automaton: a character that is accepted (`accepts`), an end of the text (`at`: ^ or $), or a fork."""

    accepts: Accepts | None = None
    at: str = ""
    ways: tuple[int, ...] = ()


class Regexp:
    """A pattern. Raises: RegexpRefused."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > _MOST_PATTERN:
            raise RegexpRefused(f"a pattern of more than {_MOST_PATTERN} characters")
        self._states: list[_State] = []
        reader = _Reader(pattern.lower(), self._states)
        end = self._add(_State())
        self._end = end
        self._start = reader.alternatives(end, 0)
        if reader.left:
            raise RegexpRefused(f"{reader.left!r} is not understood")

    @classmethod
    def of(cls, pattern: str) -> "Regexp":
        """Return one object for the same pattern. Raises: RegexpRefused."""
        return _of(pattern)

    def _add(self, state: _State) -> int:
        self._states.append(state)
        return len(self._states) - 1

    def is_in(self, text: str) -> bool:
        """Search one text like `RegexpSearch.is_in`, without counting."""
        return RegexpSearch(self, lambda steps: None).is_in(text)


@dataclass(slots=True, eq=False)
class _Reached:
    """The states that are reached between two characters. `found`: a part of the text that ends here fits. `following` contains what
    is reached by the next character.
    """

    states: frozenset[int]
    found: bool
    following: dict[str, "_Reached"] = field(default_factory=dict)
    found_at_end: bool | None = None


class RegexpSearch:
    """A search for one pattern in several texts, which remembers which states lead where."""

    def __init__(self, regexp: Regexp, spend: Spend) -> None:
        self._states, self._start, self._end = regexp._states, regexp._start, regexp._end
        self._spend = spend
        self._known: dict[frozenset[int], _Reached] = {}
        self._ways = 0

    def is_in(self, text: str) -> bool:
        """Return whether some part of the text fits; only the first 4,096 characters of a text are read."""
        text = text[:_MOST_TEXT].lower()
        self._spend(len(text) + 2)
        if not text:
            return self._end in self._spread({self._start}, at_begin=True, at_end=True)
        reached = self._known.get(frozenset()) or self._remember(frozenset(), at_begin=True)
        for character in text:
            if reached.found:
                return True
            following = reached.following.get(character)
            reached = self._follow(reached, character) if following is None else following
        if reached.found_at_end is None:
            reached.found_at_end = self._end in self._spread({*reached.states, self._start}, at_end=True)
        return reached.found or reached.found_at_end

    def _follow(self, reached: _Reached, character: str) -> _Reached:
        """Return what is reached after one more character."""
        self._spend(_STEPS_A_STATE * len(reached.states) + 10)
        found: set[int] = set()
        for number in reached.states:
            accepts = self._states[number].accepts
            if accepts is not None and accepts(character):
                found.update(self._states[number].ways)
        # A part may begin at any place.
        states = frozenset({*found, self._start})
        if len(self._known) >= _MOST_KNOWN or self._ways >= _MOST_WAYS:
            self._known.clear()
            self._ways = 0
        following = self._known.get(states) or self._remember(states)
        reached.following[character] = following
        self._ways += 1
        return following

    def _remember(self, key: frozenset[int], *, at_begin: bool = False) -> _Reached:
        spread = frozenset(self._spread(set(key) if key else {self._start}, at_begin=at_begin))
        made = self._known[key] = _Reached(spread, self._end in spread)
        return made

    def _spread(self, reached: set[int], *, at_begin: bool = False, at_end: bool = False) -> set[int]:
        """Return these states and all that are reached without another character."""
        seen: set[int] = set()
        left = list(reached)
        while left:
            number = left.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if state.accepts is None and (
                not state.at or (state.at == "^" and at_begin) or (state.at == "$" and at_end)
            ):
                left.extend(state.ways)
        self._spend(_STEPS_A_STATE * len(seen))
        return seen


@functools.lru_cache(maxsize=64)
def _of(pattern: str) -> Regexp:
    return Regexp(pattern)


class _Reader:
    """Makes states of a pattern, from its end to its beginning: each part gets the state that follows it."""

    def __init__(self, pattern: str, states: list[_State]) -> None:
        self.left = pattern
        self._states = states

    def _add(self, state: _State) -> int:
        self._states.append(state)
        return len(self._states) - 1

    def alternatives(self, then: int, depth: int) -> int:
        """Read `a|b|c`, which continues at state `then`, and return its first state."""
        if depth > _MOST_DEPTH:
            raise RegexpRefused("too many parentheses")
        begins = [self._sequence(then, depth)]
        while self.left.startswith("|"):
            self.left = self.left[1:]
            begins.append(self._sequence(then, depth))
        return begins[0] if len(begins) == 1 else self._add(_State(ways=tuple(begins)))

    def _sequence(self, then: int, depth: int) -> int:
        # Each piece continues at a joint that later gets the beginning of the next one.
        begin = joint = self._add(_State())
        while self.left and self.left[0] not in "|)":
            following = self._add(_State())
            self._states[joint].ways = (self._repeated(following, depth),)
            joint = following
        self._states[joint].ways = (then,)
        return begin

    def _repeated(self, then: int, depth: int) -> int:
        fork = self._add(_State())
        begin = self._single(fork, depth)
        # The fork follows the piece and leads on, or back to it.
        self._states[fork].ways = (then,)
        optional = False
        while self.left and self.left[0] in "*+?":
            mark, self.left = self.left[0], self.left[1:]
            if mark in "*+":
                self._states[fork].ways = (then, begin)
            optional = optional or mark in "*?"
        if self.left.startswith("{"):
            raise RegexpRefused("counts in braces are not understood")
        return self._add(_State(ways=(begin, then))) if optional else begin

    def _single(self, then: int, depth: int) -> int:
        first, self.left = self.left[0], self.left[1:]
        if first == "(":
            if self.left.startswith("?"):
                raise RegexpRefused("(? is not understood")
            begin = self.alternatives(then, depth + 1)
            if not self.left.startswith(")"):
                raise RegexpRefused("a parenthesis is open")
            self.left = self.left[1:]
            return begin
        if first in "^$":
            return self._add(_State(at=first, ways=(then,)))
        if first in "*+?{":
            raise RegexpRefused(f"{first} repeats nothing")
        if first == ".":
            return self._accepting(lambda one: True, then)
        if first == "[":
            return self._accepting(self._set(), then)
        if first == "\\":
            if not self.left or self.left[0] in "123456789":
                raise RegexpRefused("references back are not understood")
            first, self.left = self.left[0], self.left[1:]
            if first in _SHORT:
                return self._accepting(_SHORT[first], then)
        return self._accepting(functools.partial(str.__eq__, first), then)

    def _accepting(self, accepts: Accepts, then: int) -> int:
        return self._add(_State(accepts=accepts, ways=(then,)))

    def _set(self) -> Accepts:
        is_negated = self.left.startswith("^")
        rest = self.left[is_negated:]
        characters: set[str] = set()
        ranges: list[tuple[str, str]] = []
        classes: list[Accepts] = []
        first = True
        while rest and (first or rest[0] != "]"):
            first = False
            name, colon, behind = rest[2:].partition(":]") if rest.startswith("[:") else ("", "", "")
            if colon:
                if name not in _CLASSES:
                    raise RegexpRefused(f"the class {name[:16]!r} is not understood")
                classes.append(_CLASSES[name])
                rest = behind
                continue
            if rest.startswith("\\") and len(rest) > 1:
                rest = rest[1:]
            if len(rest) > 2 and rest[1] == "-" and rest[2] != "]":
                ranges.append((rest[0], rest[2]))
                rest = rest[3:]
            else:
                characters.add(rest[0])
                rest = rest[1:]
        if not rest:
            raise RegexpRefused("a bracket is open")
        self.left = rest[1:]

        def accepts(one: str) -> bool:
            found = one in characters or any(low <= one <= high for low, high in ranges)
            return (found or any(of(one) for of in classes)) is not is_negated

        return accepts
