# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""FLOAT and DOUBLE as JSON: the fewest digits that read back as the same number; what is no number is a string.

`real_text.h` does it where there is a C compiler; here is the same in Python.
"""

import cython

if not cython.compiled:
    from protocol.kernel.pure import load32, load64


def put_double(out, at, p, start):
    """The number of eight bytes at p[start:], in at most 25 bytes."""
    if cython.compiled:
        return put_real_64(out, at, load64(p, start))
    else:
        return put_plainly(out, at, load64(p, start), 52, 2047)


def put_float(out, at, p, start):
    """The number of four bytes at p[start:], in at most 25 bytes."""
    if cython.compiled:
        return put_real_32(out, at, load32(p, start))
    else:
        return put_plainly(out, at, load32(p, start), 23, 255)


if cython.compiled:
    # Powers of ten with 128 bits, rounded up.
    for k in range(-292, 325):
        power = 10 ** abs(k)
        if k >= 0:
            size = power.bit_length()
            g = power << (128 - size) if size <= 128 else -(-power >> (size - 128))
        else:
            g = -(-(1 << (127 + power.bit_length())) // power)
        set_power_of_ten(k, g >> 64, g & 0xFFFFFFFFFFFFFFFF)
else:

    def put_plainly(out, at, bits, fraction_bits, most):
        """`bits` with a fraction of so many bits, an exponent of all ones (`most`) for what is no number."""
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
            text = sign + printed(*shortest(c, q, fraction == 0 and exponent > 1))
        out[at : at + len(text)] = text.encode()
        return at + len(text)

    def shortest(c, q, near):
        """Digits and power of ten of c * 2**q; `near`: the number below is half as far away as the one above."""
        if q <= 0 and c & ((1 << -q) - 1) == 0:
            return c >> -q, 0
        k = (q * 1262611 - (524031 if near else 0)) >> 22

        def scaled(factor):
            above, below = factor * 2 ** max(q, 0) * 10 ** max(-k, 0), 2 ** max(-q, 0) * 10 ** max(k, 0)
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

    def printed(digits, exponent):
        """As Python's repr, without ".0"."""
        text = str(digits).rstrip("0")
        point = len(str(digits)) + exponent
        if point < -3 or point > 16:
            e = point - 1
            return text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{'-' if e < 0 else '+'}{abs(e):02d}"
        if point <= 0:
            return "0." + "0" * -point + text
        return text.ljust(point, "0") if len(text) <= point else text[:point] + "." + text[point:]
