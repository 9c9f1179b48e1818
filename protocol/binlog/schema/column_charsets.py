"""Character sets of columns: the one with a collation's number, and how its bytes become text.

Source: information_schema.COLLATIONS, and every byte converted to UTF-8, of MySQL 5.6.24, MySQL 9.7.4, MariaDB 10.11.18 and 11.8.6;
they agree.
"""

from typing import Final

# Character set -> [first, last] numbers of its collations.
# fmt: off
_COLLATIONS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "armscii8": ((32, 32), (64, 64), (1056, 1056), (1088, 1088),),
    "ascii": ((11, 11), (65, 65), (1035, 1035), (1089, 1089),),
    "big5": ((1, 1), (84, 84), (1025, 1025), (1108, 1108),),
    "binary": ((63, 63),),
    "cp1250": ((26, 26), (34, 34), (44, 44), (66, 66), (99, 99), (1050, 1050), (1090, 1090),),
    "cp1251": ((14, 14), (23, 23), (50, 52), (1074, 1075),),
    "cp1256": ((57, 57), (67, 67), (1081, 1081), (1091, 1091),),
    "cp1257": ((29, 29), (58, 59), (1082, 1083),),
    "cp850": ((4, 4), (80, 80), (1028, 1028), (1104, 1104),),
    "cp852": ((40, 40), (81, 81), (1064, 1064), (1105, 1105),),
    "cp866": ((36, 36), (68, 68), (1060, 1060), (1092, 1092),),
    "cp932": ((95, 96), (1119, 1120),),
    "dec8": ((3, 3), (69, 69), (1027, 1027), (1093, 1093),),
    "eucjpms": ((97, 98), (1121, 1122),),
    "euckr": ((19, 19), (85, 85), (1043, 1043), (1109, 1109),),
    "gb18030": ((248, 250),),
    "gb2312": ((24, 24), (86, 86), (1048, 1048), (1110, 1110),),
    "gbk": ((28, 28), (87, 87), (1052, 1052), (1111, 1111),),
    "geostd8": ((92, 93), (1116, 1117),),
    "greek": ((25, 25), (70, 70), (1049, 1049), (1094, 1094),),
    "hebrew": ((16, 16), (71, 71), (1040, 1040), (1095, 1095),),
    "hp8": ((6, 6), (72, 72), (1030, 1030), (1096, 1096),),
    "keybcs2": ((37, 37), (73, 73), (1061, 1061), (1097, 1097),),
    "koi8r": ((7, 7), (74, 74), (1031, 1031), (1098, 1098),),
    "koi8u": ((22, 22), (75, 75), (1046, 1046), (1099, 1099),),
    "latin1": ((5, 5), (8, 8), (15, 15), (31, 31), (47, 49), (94, 94), (1032, 1032), (1071, 1071),),
    "latin2": ((2, 2), (9, 9), (21, 21), (27, 27), (77, 77), (1033, 1033), (1101, 1101),),
    "latin5": ((30, 30), (78, 78), (1054, 1054), (1102, 1102),),
    "latin7": ((20, 20), (41, 42), (79, 79), (1065, 1065), (1103, 1103),),
    "macce": ((38, 38), (43, 43), (1062, 1062), (1067, 1067),),
    "macroman": ((39, 39), (53, 53), (1063, 1063), (1077, 1077),),
    "sjis": ((13, 13), (88, 88), (1037, 1037), (1112, 1112),),
    "swe7": ((10, 10), (82, 82), (1034, 1034), (1106, 1106),),
    "tis620": ((18, 18), (89, 89), (1042, 1042), (1113, 1113),),
    "ucs2": (
        (35, 35), (90, 90), (128, 151), (159, 159), (640, 642), (1059, 1059), (1114, 1114), (1152, 1152),
        (1174, 1174), (2560, 2727), (2744, 2759),
    ),
    "ujis": ((12, 12), (91, 91), (1036, 1036), (1115, 1115),),
    "utf16": ((54, 55), (101, 124), (672, 674), (1078, 1079), (1125, 1125), (1147, 1147), (2816, 2983), (3000, 3015),),
    "utf16le": ((56, 56), (62, 62), (1080, 1080), (1086, 1086),),
    "utf32": ((60, 61), (160, 183), (736, 738), (1084, 1085), (1184, 1184), (1206, 1206), (3072, 3239), (3256, 3271),),
    "utf8": (
        (33, 33), (76, 76), (83, 83), (192, 215), (223, 223), (576, 579), (1057, 1057), (1107, 1107), (1216, 1216),
        (1238, 1238), (2048, 2215), (2232, 2247),
    ),
    "utf8mb4": (
        (45, 46), (224, 247), (255, 271), (273, 275), (277, 294), (296, 298), (300, 300), (303, 323), (608, 611),
        (1069, 1070), (1248, 1248), (1270, 1270), (2304, 2471), (2488, 2503),
    ),
}

# Sets of one byte a character -> Python's nearest codec, and where servers differ: byte -> characters from there on.
_SINGLE_BYTE: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "armscii8": ("latin-1", {
        0xA1: (
            "\u2741\xa7\u0589)(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c\u055b"
            "\u055e\u0531\u0561\u0532\u0562\u0533\u0563\u0534\u0564\u0535\u0565\u0536\u0566\u0537\u0567\u0538"
            "\u0568\u0539\u0569\u053a\u056a\u053b\u056b\u053c\u056c\u053d\u056d\u053e\u056e\u053f\u056f\u0540"
            "\u0570\u0541\u0571\u0542\u0572\u0543\u0573\u0544\u0574\u0545\u0575\u0546\u0576\u0547\u0577\u0548"
            "\u0578\u0549\u0579\u054a\u057a\u054b\u057b\u054c\u057c\u054d\u057d\u054e\u057e\u054f\u057f\u0550"
            "\u0580\u0551\u0581\u0552\u0582\u0553\u0583\u0554\u0584\u0555\u0585\u0556\u0586\u2019'"
        ),
    }),
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", {
        0x8A: "\ufffd", 0x8F: "\ufffd", 0x98: "\ufffd", 0x9A: "\ufffd", 0x9F: "\ufffd", 0xAA: "\ufffd", 0xC0: "\ufffd",
        0xFF: "\ufffd",
    }),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "\u207f\xb2"}),
    "dec8": ("latin-1", {
        0xA4: "\ufffd", 0xA6: "\ufffd", 0xA8: "\xa4", 0xAC: "\ufffd\ufffd\ufffd\ufffd", 0xB4: "\ufffd", 0xB8: "\ufffd",
        0xBE: "\ufffd", 0xD0: "\ufffd", 0xD7: "\u0152", 0xDD: "\u0178\ufffd", 0xF0: "\ufffd", 0xF7: "\u0153",
        0xFD: "\xff\ufffd\ufffd",
    }),
    "geostd8": ("cp1252", {
        0x83: "\ufffd", 0x88: "\ufffd", 0x8A: "\ufffd", 0x8C: "\ufffd", 0x8E: "\ufffd", 0x98: "\ufffd\ufffd\ufffd",
        0x9C: "\ufffd", 0x9E: "\ufffd\ufffd",
        0xC0: (
            "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db\u10dc\u10f2\u10dd"
            "\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7\u10e8\u10e9\u10ea\u10eb\u10ec"
            "\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"
            "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\u2116\ufffd\ufffd"
        ),
    }),
    "greek": ("iso8859_7", {0xA1: "\u02bd\u02bc", 0xA4: "\ufffd\ufffd", 0xAA: "\ufffd"}),
    "hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "hp8": ("hp_roman8", {}),
    "keybcs2": ("cp852", {
        0x80: "\u010c", 0x83: "\u010f", 0x85: "\u010e\u0164\u010d\u011b\u011a\u0139\xcd\u013e\u013a", 0x8F: "\xc1",
        0x91: "\u017e\u017d", 0x95: "\xd3\u016f\xda\xfd", 0x9B: "\u0160\u013d\xdd\u0158\u0165",
        0xA4: "\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154\xbc\xa1", 0xB5: "\u2561\u2562\u2556\u2555",
        0xBD: "\u255c\u255b", 0xC6: "\u255e\u255f",
        0xCF: "\u2567\u2568\u2564\u2565\u2559\u2558\u2552\u2553\u256b\u256a", 0xDD: "\u258c\u2590", 0xE0: "\u03b1",
        0xE2: (
            "\u0393\u03c0\u03a3\u03c3\xb5\u03c4\u03a6\u0398\u03a9\u03b4\u221e\u03c6\u03b5\u2229\u2261\xb1"
            "\u2265\u2264\u2320\u2321"
        ),
        0xF7: "\u2248", 0xF9: "\u2219\xb7\u221a\u207f\xb2",
    }),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "\u2022"}),
    "latin1": ("cp1252", {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": ("ascii", {0x40: "\xc9", 0x5B: "\xc4\xd6\xc5\xdc", 0x60: "\xe9", 0x7B: "\xe4\xf6\xe5\xfc\ufffd"}),
    "tis620": ("tis_620", {0xA0: "\ufffd", 0xDB: "\ufffd\ufffd\ufffd\ufffd", 0xFC: "\ufffd\ufffd\ufffd\ufffd"}),
}
# Sets of several bytes a character that Python decodes.
_CODECS: Final[dict[str, str]] = {
    "big5": "big5", "cp932": "cp932", "eucjpms": "euc_jp", "euckr": "euc_kr", "gb18030": "gb18030", "gb2312": "gb2312",
    "gbk": "gbk", "sjis": "shift_jis", "ujis": "euc_jp",
}
# fmt: on
_BY_COLLATION: Final = {
    number: name for name, spans in _COLLATIONS.items() for first, last in spans for number in range(first, last + 1)
}


def charset_of_column(collation: int) -> str | None:
    """Return the character set of a collation's number; None for one that no server had."""
    return _BY_COLLATION.get(collation)


def collation_of_charset(charset: str) -> int | None:
    """Return a number of a collation of the character set with this name (`utf8mb3` is `utf8`); None: not known."""
    name = charset.lower()
    spans = _COLLATIONS.get("utf8" if name == "utf8mb3" else name)
    return None if spans is None else spans[0][0]


def characters(charset: str) -> list[int] | None:
    """Return the code point of each of the 256 bytes, 0xFFFD if there is none; None: no set of one byte a character."""
    if charset not in _SINGLE_BYTE:
        return None
    codec, differences = _SINGLE_BYTE[charset]
    text = list(bytes(range(256)).decode(codec, "replace"))
    for first, there in differences.items():
        text[first : first + len(there)] = there
    return [ord(character) for character in text]


def decode_text(data: bytes, charset: str | None) -> str:
    """Decode text of a character set (None: not known, so UTF-8), with U+FFFD for invalid bytes."""
    table = characters(charset or "utf8")
    if table is not None:
        return "".join(chr(table[byte]) for byte in data)
    wide = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
    return data.decode(wide.get(charset or "") or codec_of_charset(charset or "") or "utf-8", "replace")


def codec_of_charset(charset: str) -> str | None:
    """Return Python's codec for a set of several bytes a character; None for the other sets."""
    return _CODECS.get(charset)
