"""`python -m relay`: the same as the command `binlog-relay`."""

from relay.cli import main

main()
