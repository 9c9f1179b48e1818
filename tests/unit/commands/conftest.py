"""What the tests of commands share."""

from tests.unit.commands.test_command_line import command

__all__ = ["command"]
