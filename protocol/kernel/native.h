/* The kernel's leaf operations in C: CRC32 of binlog events, and unaligned loads and moves.
 *
 * CRC32 is zlib's (polynomial 0xEDB88320, reflected, inverted at both ends). On x86-64 with PCLMULQDQ it folds 16 bytes
 * a step by carry-less multiplication (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel 2009); elsewhere it uses eight tables. protocol/kernel/pure.py is the uncompiled twin.
 */
#ifndef BINLOG_RELAY_NATIVE_H
#define BINLOG_RELAY_NATIVE_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define BR_X86 1
#include <immintrin.h>
#else
#define BR_X86 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the compiled kernel needs a little-endian machine; build with BINLOG_RELAY_KERNEL=skip"
#endif

static inline uint32_t load16(const uint8_t *p, int64_t at) { uint16_t v; memcpy(&v, p + at, 2); return v; }
static inline uint32_t load32(const uint8_t *p, int64_t at) { uint32_t v; memcpy(&v, p + at, 4); return v; }
static inline uint64_t load64(const uint8_t *p, int64_t at) { uint64_t v; memcpy(&v, p + at, 8); return v; }
static inline uint32_t load24(const uint8_t *p, int64_t at) {
    return (uint32_t)p[at] | ((uint32_t)p[at + 1] << 8) | ((uint32_t)p[at + 2] << 16);
}
static inline void store32(uint8_t *p, int64_t at, uint32_t v) { memcpy(p + at, &v, 4); }
static inline void store64(uint8_t *p, int64_t at, uint64_t v) { memcpy(p + at, &v, 8); }

/* Copies p[i:stop] to out[at:room] eight bytes at a time, up to the first eight that are not all ASCII which needs no escape
 * in JSON (no control character, quotation mark, backslash); returns how many bytes. */
static inline int64_t copy_plain(uint8_t *out, int64_t at, int64_t room, const uint8_t *p, int64_t i, int64_t stop) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    int64_t start = i;
    while (stop - i >= 8 && room - at >= 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        uint64_t quote = w ^ (ones * '"'), backslash = w ^ (ones * '\\');
        if (((w - ones * 0x20) | w | (quote - ones) | (backslash - ones)) & high) break;
        memcpy(out + at, &w, 8);
        at += 8;
        i += 8;
    }
    return i - start;
}

/* Copies p[i:stop] to out[at:], which has room for it, eight bytes at a time, up to the first eight that are not all ASCII;
 * returns how many bytes. */
static inline int64_t copy_ascii(uint8_t *out, int64_t at, const uint8_t *p, int64_t i, int64_t stop) {
    int64_t start = i;
    for (; stop - i >= 8; i += 8, at += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        if (w & 0x8080808080808080u) break;
        memcpy(out + at, &w, 8);
    }
    return i - start;
}

/* Within one buffer; the ranges may overlap. */
static inline void move_bytes(uint8_t *p, int64_t to, int64_t from, int64_t count) {
    memmove(p + to, p + from, (size_t)count);
}
/* Between buffers that do not overlap. */
static inline void copy_bytes(uint8_t *to_p, int64_t to, const uint8_t *from_p, int64_t from, int64_t count) {
    memcpy(to_p + to, from_p + from, (size_t)count);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

#define BR_PATCH_SPAN 1024
static uint32_t br_table[8][256];
static uint32_t br_power[64];                   /* x^(8 * 2^k) mod P */
static uint32_t br_patch[16][BR_PATCH_SPAN];    /* [bits 10..13 of the flags][bytes behind the flags] */
static int br_have_clmul = 0;

static uint32_t br_multiply(uint32_t a, uint32_t b) { /* a * b mod P, reflected */
    uint32_t m = 1u << 31, r = 0;
    for (;;) {
        if (a & m) { r ^= b; if ((a & (m - 1)) == 0) break; }
        m >>= 1;
        if (m == 0) break;
        b = b & 1 ? (b >> 1) ^ 0xEDB88320u : b >> 1;
    }
    return r;
}

static void native_setup(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0xEDB88320u : c >> 1;
        br_table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++)
            br_table[t][i] = (br_table[t - 1][i] >> 8) ^ br_table[0][br_table[t - 1][i] & 255];
    br_power[0] = 1u << 23; /* x^8 */
    for (int k = 1; k < 64; k++) br_power[k] = br_multiply(br_power[k - 1], br_power[k - 1]);
    for (uint32_t bits = 0; bits < 16; bits++) {
        uint32_t c = br_table[0][bits << 2];
        for (int n = 0; n < BR_PATCH_SPAN; n++) {
            br_patch[bits][n] = c;
            c = (c >> 8) ^ br_table[0][c & 255];
        }
    }
#if BR_X86
    __builtin_cpu_init();
    br_have_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
#endif
}

/* What a change of the bits 10..13 in an event's flags does to its CRC32: CRC32 is linear, so the effect is the CRC of the
 * changed byte alone, moved on over the `after` bytes that follow it. */
static inline uint32_t flags_effect(uint32_t changed_bits, int64_t after) {
    if (after < BR_PATCH_SPAN) return br_patch[changed_bits & 15][after];
    uint32_t c = br_table[0][(changed_bits & 15) << 2];
    uint64_t n = (uint64_t)after;
    for (int k = 0; n; k++, n >>= 1)
        if (n & 1) c = br_multiply(br_power[k], c);
    return c;
}

/* ---- CRC32 ------------------------------------------------------------------------------------------------------- */

static uint32_t br_crc_tables(uint32_t c, const uint8_t *p, int64_t n) {
    while (n >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= c;
        c = br_table[7][v & 255] ^ br_table[6][(v >> 8) & 255] ^ br_table[5][(v >> 16) & 255] ^
            br_table[4][(v >> 24) & 255] ^ br_table[3][(v >> 32) & 255] ^ br_table[2][(v >> 40) & 255] ^
            br_table[1][(v >> 48) & 255] ^ br_table[0][v >> 56];
        p += 8;
        n -= 8;
    }
    while (n-- > 0) c = (c >> 8) ^ br_table[0][(c ^ *p++) & 255];
    return c;
}

#if BR_X86
/* Row r: moves the first r bytes of a register to its end; row r of the second: drops the first r bytes. 0x80 gives 0. */
static const uint8_t br_shift_bytes[48] __attribute__((aligned(16))) = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

#define BR_FOLD(x, k, next) \
    _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next)

/* n >= 16. The message is padded in front with zeros to whole registers, which does not change a CRC that starts at 0;
 * the start value is put in by xor into the message's first four bytes. */
__attribute__((target("pclmul,sse4.1,ssse3"))) static uint32_t br_crc_clmul(uint32_t c, const uint8_t *p, int64_t n) {
    const __m128i k12 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4); /* 64 bytes on */
    const __m128i k34 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0); /* 16 bytes on */
    const __m128i k5 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i poly = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low32 = _mm_setr_epi32(~0, 0, ~0, 0);
    int r = (int)(n & 15);
    __m128i start = _mm_cvtsi32_si128((int)c), x, t;
    if (r) {
        __m128i to_end = _mm_loadu_si128((const __m128i *)(br_shift_bytes + r));
        __m128i drop = _mm_loadu_si128((const __m128i *)(br_shift_bytes + 16 + r));
        x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), to_end);
        x = _mm_xor_si128(x, _mm_shuffle_epi8(start, to_end));
        p += r;
        n -= r;
        t = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_shuffle_epi8(start, drop));
        x = BR_FOLD(x, k34, t);
    } else {
        x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), start);
    }
    p += 16;
    n -= 16;
    if (n >= 112) { /* four lanes: x is the first, the next three follow */
        __m128i a = x, b = _mm_loadu_si128((const __m128i *)p), d = _mm_loadu_si128((const __m128i *)(p + 16)),
                e = _mm_loadu_si128((const __m128i *)(p + 32));
        p += 48;
        n -= 48;
        while (n >= 64) {
            a = BR_FOLD(a, k12, _mm_loadu_si128((const __m128i *)p));
            b = BR_FOLD(b, k12, _mm_loadu_si128((const __m128i *)(p + 16)));
            d = BR_FOLD(d, k12, _mm_loadu_si128((const __m128i *)(p + 32)));
            e = BR_FOLD(e, k12, _mm_loadu_si128((const __m128i *)(p + 48)));
            p += 64;
            n -= 64;
        }
        a = BR_FOLD(a, k34, b);
        a = BR_FOLD(a, k34, d);
        x = BR_FOLD(a, k34, e);
    }
    while (n >= 16) {
        x = BR_FOLD(x, k34, _mm_loadu_si128((const __m128i *)p));
        p += 16;
        n -= 16;
    }
    /* 128 bits to 64, to 32 (Barrett) */
    t = _mm_clmulepi64_si128(x, k34, 0x10);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), t);
    t = _mm_srli_si128(x, 4);
    x = _mm_clmulepi64_si128(_mm_and_si128(x, low32), k5, 0x00);
    x = _mm_xor_si128(x, t);
    t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), poly, 0x10);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), poly, 0x00);
    x = _mm_xor_si128(x, t);
    return (uint32_t)_mm_extract_epi32(x, 1);
}
#endif

/* zlib's crc32(value, p[start:stop]). */
static inline uint32_t crc32_of(const uint8_t *p, int64_t start, int64_t stop, uint32_t value) {
    int64_t n = stop - start;
    uint32_t c = ~value;
#if BR_X86
    if (br_have_clmul && n >= 16) return ~br_crc_clmul(c, p + start, n);
#endif
    return ~br_crc_tables(c, p + start, n);
}

/* Off: the table path on any machine, so that it can be tested everywhere. Returns whether carry-less multiplication is on. */
static int native_use_clmul(int on) {
    native_setup();
    if (!on) br_have_clmul = 0;
    return br_have_clmul;
}

#endif
