"""Where the words of a statement stand between its parentheses."""

from relay.view.rules.targets.statement.source_statement import SourceStatement


def enclosing(statement: SourceStatement) -> list[int]:
    """Of each word, the index of the innermost ( that is open there; -1: none. A parenthesis stands outside of what it encloses."""
    found: list[int] = []
    opened: list[int] = []
    for index in range(len(statement.words)):
        symbol = statement.word(index)
        if symbol == ")" and opened:
            opened.pop()
        found.append(opened[-1] if opened else -1)
        if symbol == "(":
            opened.append(index)
    return found


def closing(statement: SourceStatement, opened: int) -> int:
    """Where the parenthesis that is opened at `opened` is closed; the number of words: nowhere."""
    depth = 0
    for index in range(opened, len(statement.words)):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        if not depth:
            return index
    return len(statement.words)
