# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What a statement is, by its first word."""


def starts_with(p, at, end, word, count):
    """Whether the text goes on with `word` (`count` lower-case letters), without case, and no letter behind it."""
    if end - at < count:
        return False
    for i in range(count):
        c = p[at + i]
        if 65 <= c <= 90:
            c += 32
        if c != word[i]:
            return False
    if end - at == count:
        return True
    c = p[at + count] | 32
    return not 97 <= c <= 122


def changes_rows(p, at, end):
    """Whether a statement is one that changes rows (INSERT, LOAD DATA, CALL …), and not DDL or administration.

    Comments before the first word are passed over; what stands in /*! ... */ is read as the server does.
    """
    while at < end:
        c = p[at]
        if c == 32 or 9 <= c <= 13 or c == 40:  # blanks, line ends, parentheses
            at += 1
        elif c == 47 and at + 1 < end and p[at + 1] == 42:
            if at + 2 < end and p[at + 2] == 33:
                at += 3
                while at < end and 48 <= p[at] <= 57:
                    at += 1
            else:
                at += 2
                while at + 1 < end and not (p[at] == 42 and p[at + 1] == 47):
                    at += 1
                at += 2
        elif c == 35 or (c == 45 and at + 1 < end and p[at + 1] == 45):
            while at < end and p[at] != 10:
                at += 1
        else:
            break
    return (
        starts_with(p, at, end, b"insert", 6)
        or starts_with(p, at, end, b"update", 6)
        or starts_with(p, at, end, b"delete", 6)
        or starts_with(p, at, end, b"replace", 7)
        or starts_with(p, at, end, b"load", 4)
        or starts_with(p, at, end, b"select", 6)
        or starts_with(p, at, end, b"with", 4)
        or starts_with(p, at, end, b"call", 4)
        or starts_with(p, at, end, b"do", 2)
        or starts_with(p, at, end, b"values", 6)
    )
