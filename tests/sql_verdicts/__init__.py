"""What today's readers of SQL say of many statements, recorded: the judge of every change to how statements are read.

    python -m tests.sql_verdicts check [--debian] [--every N] [--against DIRECTORY]

`readers.py` has the readers, `corpus.py` the statements, `recording.py` the digests that are kept.
"""
