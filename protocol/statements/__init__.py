"""Answers to the SQL statements of replicas, their tools and people: a tokenizer and a table."""

from protocol.statements.answers import Answer as Answer
from protocol.statements.answers import Done as Done
from protocol.statements.answers import EncodedRows as EncodedRows
from protocol.statements.answers import GivenAnswer as GivenAnswer
from protocol.statements.answers import StatisticsText as StatisticsText
from protocol.statements.expression.like import matches_like as matches_like
from protocol.statements.expression.tokens import tokenize as tokenize
from protocol.statements.requests import KillConnection as KillConnection
from protocol.statements.requests import Request as Request
from protocol.statements.requests import Words as Words
from protocol.statements.session.effort import TooMuchForTheLoop as TooMuchForTheLoop
from protocol.statements.session.facts import SourceFacts as SourceFacts
from protocol.statements.session.notice import Notice as Notice
from protocol.statements.session.session import StatementSession as StatementSession
from protocol.statements.set_variables import MAX_USER_VARIABLES as MAX_USER_VARIABLES
from protocol.statements.table import answer_statement as answer_statement
