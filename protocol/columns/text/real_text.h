/* Numbers that are not whole as text: the fewest decimal digits that read back as the same number, and of these the nearest to it.
 *
 * The algorithm is R. Giulietti's "The Schubfach way to render doubles" (2020): the number and both ends of the interval that
 * rounds to it are multiplied by a power of ten of 128 bits, so that one of at most four candidates is the answer.
 * real_text.py has the same in exact arithmetic, and fills the table of powers.
 */
#ifndef BINLOG_RELAY_REAL_TEXT_H
#define BINLOG_RELAY_REAL_TEXT_H

#include <stdint.h>
#include <string.h>

#define BR_LEAST_POWER (-292)
#define BR_POWERS 617
static uint64_t br_powers_of_ten[BR_POWERS][2]; /* 10^k, rounded up, its first bit set: high and low 64 bits */

static void set_power_of_ten(int k, uint64_t high, uint64_t low) {
    br_powers_of_ten[k - BR_LEAST_POWER][0] = high;
    br_powers_of_ten[k - BR_LEAST_POWER][1] = low;
}

/* The whole part of g * factor / 2^128; its last bit is set, too, where something is left. */
static inline uint64_t br_scaled(const uint64_t *g, uint64_t factor) {
    unsigned __int128 low = (unsigned __int128)g[1] * factor;
    unsigned __int128 high = (unsigned __int128)g[0] * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* c * 2^q as *digits * 10^result. `near`: the number below is half as far away as the one above. */
static int br_shortest(uint64_t c, int q, int near, uint64_t *digits) {
    int odd = (int)(c & 1);
    int k = (q * 1262611 - (near ? 524031 : 0)) >> 22; /* floor(log10(2^q)), of 3/4 of it where near */
    int h = q + ((-k * 1741647) >> 19) + 1;
    const uint64_t *g = br_powers_of_ten[-k - BR_LEAST_POWER];
    uint64_t value = br_scaled(g, (4 * c) << h);
    uint64_t lower = br_scaled(g, (4 * c - 2 + (uint64_t)near) << h) + (uint64_t)odd;
    uint64_t upper = br_scaled(g, (4 * c + 2) << h) - (uint64_t)odd;
    uint64_t s = value / 4;
    if (s >= 10) { /* one digit less? */
        uint64_t t = s / 10;
        int below = lower <= 40 * t, above = 40 * t + 40 <= upper;
        if (below != above) { *digits = t + (uint64_t)above; return k + 1; }
    }
    int below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above) { *digits = s + (uint64_t)above; return k; }
    uint64_t middle = 4 * s + 2;
    *digits = s + (uint64_t)(value > middle || (value == middle && (s & 1)));
    return k;
}

/* As Python's repr: an exponent only below 1e-4 and from 1e16 on. At most 25 bytes. */
static int64_t br_put_digits(uint8_t *out, int64_t at, uint64_t digits, int exponent) {
    uint8_t text[20];
    int n = 0;
    while (digits % 10 == 0) { digits /= 10; exponent++; }
    for (; digits; digits /= 10) text[n++] = (uint8_t)('0' + digits % 10);
    int point = n + exponent; /* digits before the point */
    if (point < -3 || point > 16) {
        out[at++] = text[--n];
        if (n) {
            out[at++] = '.';
            while (n) out[at++] = text[--n];
        }
        int e = point - 1;
        out[at++] = 'e';
        out[at++] = e < 0 ? '-' : '+';
        if (e < 0) e = -e;
        if (e >= 100) out[at++] = (uint8_t)('0' + e / 100);
        out[at++] = (uint8_t)('0' + e / 10 % 10);
        out[at++] = (uint8_t)('0' + e % 10);
        return at;
    }
    if (point <= 0) {
        out[at++] = '0';
        out[at++] = '.';
        for (; point < 0; point++) out[at++] = '0';
        while (n) out[at++] = text[--n];
        return at;
    }
    while (n) {
        out[at++] = text[--n];
        if (--point == 0 && n) out[at++] = '.';
    }
    for (; point > 0; point--) out[at++] = '0';
    return at;
}

/* `bits` with a fraction of so many bits, an exponent of all ones (`most`) for what is no number. */
static int64_t br_put_number(uint8_t *out, int64_t at, uint64_t bits, int negative, int fraction_bits, int most) {
    uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1), digits;
    int e = (int)(bits >> fraction_bits) & most, bias = (most >> 1) + fraction_bits;
    if (e == most) {
        const char *word = fraction ? "\"NaN\"" : negative ? "\"-Infinity\"" : "\"Infinity\"";
        size_t n = strlen(word);
        memcpy(out + at, word, n);
        return at + (int64_t)n;
    }
    if (negative) out[at++] = '-';
    if (e == 0 && fraction == 0) {
        out[at++] = '0';
        return at;
    }
    uint64_t c = e ? fraction | (uint64_t)1 << fraction_bits : fraction;
    int q = (e ? e : 1) - bias;
    int exponent = 0;
    if (q <= 0 && q > -fraction_bits - 1 && (c & (((uint64_t)1 << -q) - 1)) == 0) digits = c >> -q;
    else exponent = br_shortest(c, q, fraction == 0 && e > 1, &digits);
    return br_put_digits(out, at, digits, exponent);
}

static inline int64_t put_real_64(uint8_t *out, int64_t at, uint64_t bits) {
    return br_put_number(out, at, bits, (int)(bits >> 63), 52, 2047);
}
static inline int64_t put_real_32(uint8_t *out, int64_t at, uint32_t bits) {
    return br_put_number(out, at, bits, (int)(bits >> 31), 23, 255);
}

#endif
