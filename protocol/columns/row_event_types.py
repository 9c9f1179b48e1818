# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What an event with changed rows does to them, by its type code: 20-25 V1, 30-32 V2, 39 partial; MariaDB's packed ones from 166 on."""


def inserts_rows(t):
    """Write_rows in any form."""
    return t == 23 or t == 30 or t == 166 or t == 169


def updates_rows(t):
    """Update_rows in any form: each row has two images."""
    return t == 24 or t == 31 or t == 39 or t == 167 or t == 170


def has_extra_data(t):
    """V2: two bytes of the post-header are the length of what stands behind it."""
    return 30 <= t <= 32 or t == 39 or 169 <= t <= 171
