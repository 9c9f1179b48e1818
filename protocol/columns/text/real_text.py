"""FLOAT and DOUBLE as JSON, uncompiled: the functions of `real_text.h`, in exact arithmetic, if there is no C compiler."""

from protocol.kernel.pure import Writable


def put_real_64(out: Writable, at: int, bits: int) -> int:
    """Write the number with these 64 bits, in at most 25 bytes."""
    return _put_real(out, at, bits, 52, 2047)


def put_real_32(out: Writable, at: int, bits: int) -> int:
    """Write the number with these 32 bits, in at most 25 bytes."""
    return _put_real(out, at, bits, 23, 255)


def set_power_of_ten(k: int, high: int, low: int) -> None:
    """Do nothing: here powers of ten have all their digits."""


def _put_real(out: Writable, at: int, bits: int, fraction_bits: int, most: int) -> int:
    """Write `bits` with a fraction of so many bits, and an exponent of all ones (`most`) for what is no number."""
    fraction = bits & ((1 << fraction_bits) - 1)
    exponent = bits >> fraction_bits & most
    sign = "-" if bits >> fraction_bits > most else ""
    if exponent == most:
        text = '"NaN"' if fraction else f'"{sign}Infinity"'
    elif exponent == 0 and fraction == 0:
        text = sign + "0"
    else:
        c = fraction | 1 << fraction_bits if exponent else fraction
        q = max(exponent, 1) - (most >> 1) - fraction_bits
        text = sign + _printed(*_shortest(c, q, fraction == 0 and exponent > 1))
    out[at : at + len(text)] = text.encode()
    return at + len(text)


def _shortest(c: int, q: int, near: bool) -> tuple[int, int]:
    """Return digits and power of ten of c * 2**q; `near`: the number below is half as far away as the one above."""
    if q <= 0 and c & ((1 << -q) - 1) == 0:
        return c >> -q, 0
    k = (q * 1262611 - (524031 if near else 0)) >> 22

    def scaled(factor: int) -> int:
        above = (factor << max(q, 0)) * int(10 ** max(-k, 0))
        below = int(10 ** max(k, 0)) << max(-q, 0)
        return above // below | (above % below != 0)

    odd = c & 1
    value, lower, upper = scaled(4 * c), scaled(4 * c - 2 + near) + odd, scaled(4 * c + 2) - odd
    for unit in (40, 4):
        s = value // unit
        if unit == 40 and value < 40:
            continue
        below, above = lower <= unit * s, unit * s + unit <= upper
        if below != above:
            return s + above, k + (unit == 40)
    middle = 4 * s + 2
    return s + (value > middle or (value == middle and s & 1 == 1)), k


def _printed(digits: int, exponent: int) -> str:
    """Return the text of Python's repr, without ".0"."""
    text = str(digits).rstrip("0")
    point = len(str(digits)) + exponent
    if point < -3 or point > 16:
        e = point - 1
        return text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{'-' if e < 0 else '+'}{abs(e):02d}"
    if point <= 0:
        return "0." + "0" * -point + text
    return text.ljust(point, "0") if len(text) <= point else text[:point] + "." + text[point:]
