"""The views of a running relay: each follows the archive, one file of it after the other, and reports why it stops."""
