"""What is the matter with a database that fails: told apart by its own codes, and logged once as long as it lasts."""

from __future__ import annotations

import logging
import sqlite3

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ingest.database import Outage, trouble

REFUSED = psycopg.OperationalError('connection to server at "127.0.0.1", port 9 failed: Connection refused')
ENDED = errors.AdminShutdown("terminating connection due to administrator command")


def failed(cause: Exception) -> DBAPIError:
    """Return an error as SQLAlchemy raises it, with a statement and somebody's question in it."""
    kind = OperationalError if isinstance(cause, psycopg.OperationalError) else ProgrammingError
    return kind("SELECT 1 WHERE 'my question'", {}, cause)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (REFUSED, "away"),
        (ENDED, "away"),
        (psycopg.OperationalError("FATAL:  the database system is starting up"), "away"),
        (psycopg.OperationalError("FATAL:  sorry, too many clients already"), "busy"),
        (psycopg.OperationalError('FATAL:  password authentication failed for user "bot"'), "account"),
        (errors.QueryCanceled("canceling statement due to statement timeout"), "slow"),
        (errors.LockNotAvailable("canceling statement due to lock timeout"), "slow"),
        (errors.DiskFull("could not extend file"), "full"),
        (errors.InsufficientPrivilege("permission denied for table cases"), "rights"),
        (errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"), "read-only"),
        (errors.UndefinedColumn("column cases.tier does not exist"), "changed"),
        (errors.UndefinedTable('relation "cases" does not exist'), "changed"),
        (errors.DivisionByZero("division by zero"), "other"),
        (sqlite3.OperationalError("no such column: tier"), "changed"),
        (sqlite3.OperationalError("a thing of no code"), "other"),
    ],
)
def test_what_is_the_matter_is_told_by_the_databases_own_codes(cause: Exception, kind: str) -> None:
    assert trouble(failed(cause)) == kind


def test_a_pool_without_a_free_connection_is_busy() -> None:
    assert trouble(PoolTimeout()) == "busy"


def test_an_outage_is_logged_once_again_when_the_reason_changes_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage(logging.getLogger("test"), "the inbox could not be read")
    with caplog.at_level(logging.INFO):
        for cause in (
            ENDED,
            REFUSED,
            REFUSED,
            errors.InsufficientPrivilege("permission denied for table inbox"),
        ):
            outage.failed(failed(cause))
        outage.over()
        outage.over()
    said = [(record.levelname, record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert said == [
        (
            "ERROR",
            "the inbox could not be read: terminating connection due to administrator command",
            False,
        ),
        ("ERROR", "the inbox could not be read: permission denied for table inbox", False),
        ("INFO", "over: the inbox could not be read", False),
    ]


def test_a_failure_of_no_known_kind_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    Outage(logging.getLogger("test"), "it broke").failed(failed(errors.DivisionByZero("division by zero")))
    assert caplog.records[0].exc_info
    assert "my question" not in caplog.records[0].getMessage()
