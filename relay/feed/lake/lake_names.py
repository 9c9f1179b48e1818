"""Names of the source's tables as folders."""


def folder_name(name: str) -> str:
    """A schema's or table's name as a folder: as MySQL calls its files, `a b` is a@0020b. URLs would decode %20 once too often."""
    return "".join(one if one.isascii() and (one.isalnum() or one in "_-$") else f"@{ord(one):04x}" for one in name)
