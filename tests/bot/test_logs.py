"""The log: one JSON object a line with its row, and no secret in either style."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bot import logs
from bot.config import load, secret_values

SECRETS = {
    "SLACK_BOT_TOKEN": "xoxb-1234-secret",
    "SLACK_APP_TOKEN": "xapp-1-A1-secret",
    "OPENAI_API_KEY": "a-key-of-no-known-form",
    "ELASTICSEARCH_API_KEY": "bm90IGEgcmVhbCBrZXk=",
}
SAID = (
    "tokens xoxb-9999-other, xapp-2-B2-other and bm90IGEgcmVhbCBrZXk=, Authorization: Bearer abc.def, "
    "wss://slack/link/?ticket=8a-secret&app_id=1, postgresql://bot:hunter22@db/twohop"
)


@contextmanager
def logger(style: logs.Style) -> Iterator[logging.Logger]:
    """Yield a logger that writes to stderr in a style."""
    settings = load(None, SECRETS)
    handler = logs.handler(style, secret_values(settings))
    made = logging.getLogger(f"tests.{style}")
    made.setLevel(logging.INFO)
    made.addHandler(handler)
    try:
        yield made
    finally:
        made.removeHandler(handler)


@pytest.mark.parametrize("style", ["text", "json"])
def test_no_secret_is_logged_be_it_in_a_message_an_argument_or_a_traceback(
    style: logs.Style, capsys: pytest.CaptureFixture[str]
) -> None:
    with logger(style) as log:
        try:
            raise ValueError(SAID)
        except ValueError:
            log.exception("it broke with %s at %s", SAID, "a-key-of-no-known-form")
    said = capsys.readouterr().err
    for secret in ("9999", "B2", "bm90", "abc.def", "8a-secret", "hunter22", "a-key-of-no-known-form"):
        assert secret not in said
    for kept in (
        "it broke with tokens",
        "ValueError",
        "wss://slack/link",
        "app_id=1",
        "postgresql://bot:",
        "@db/twohop",
    ):
        assert kept in said


def test_requests_to_a_cluster_are_not_logged_one_by_one() -> None:
    names = ("elastic_transport.transport", "elastic_transport.node_pool", "elasticsearch", "alembic")
    before = {name: logging.getLogger(name.partition(".")[0]).level for name in names}
    try:
        logs.set_up("text", ())
        enabled = {name: logging.getLogger(name).isEnabledFor(logging.WARNING) for name in names}
    finally:
        logging.captureWarnings(capture=False)
        for name, level in before.items():
            logging.getLogger(name.partition(".")[0]).setLevel(level)
    assert enabled == dict.fromkeys(names, False) | {"alembic": True}


def test_a_line_is_one_object_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    with logger("json") as log:
        token = logs.ROW.set("ab12")
        log.warning("two\nlines of “%s”", {"a": object})
        logs.ROW.reset(token)
        try:
            raise KeyError("4812")
        except KeyError:
            log.exception("it broke")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["row"]) == ("WARNING", "ab12")
    assert first["message"].startswith("two\nlines of “")
    assert "row" not in second
    assert second["exception"].startswith("Traceback")
    assert second["exception"].endswith("KeyError: '4812'")


def test_what_is_printed_becomes_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stream = logs.Lines(logging.getLogger("tests.lines"))
    with caplog.at_level(logging.INFO, "tests.lines"):
        stream.write("loading ")
        stream.write("the model …\n\nerror: no\n")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "loading the model …"),
        ("ERROR", "error: no"),
    ]
