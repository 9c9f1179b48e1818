"""`python -m relay`: the same as the command `binlog-relay`."""

from relay.cli.command_line import main

main()
