"""Why an export is not made."""


class ExportRefused(Exception):
    """What was asked for cannot be exported. `str()` is whole sentences: what, where, what to do."""


class ExportDamaged(ExportRefused):
    """Bytes of the archive are not what was archived."""
