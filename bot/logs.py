"""How the log is written: text for a person or one JSON object a line for a program, and no secret in either."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Collection
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

Style = Literal["text", "json"]

ROW: ContextVar[str] = ContextVar("row", default="")
"""Id of the inbox row that is being answered; every line logged meanwhile carries it."""

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CHATTY = ("alembic", "apscheduler", "httpx", "httpx2", "openai", "sentence_transformers")
_MUTE = ("elastic_transport", "elasticsearch")
"""Libraries whose warnings are about each request, too: what goes wrong is said in our own words."""
_HIDDEN = "********"
_SECRET = re.compile(
    r"\bx(?:ox[a-z]|app)-[\w-]+"
    r"|\bsk-[\w-]{16,}"
    r"|(?<=Bearer )\S+|(?<=ApiKey )\S+|(?<=Basic )\S+"
    r"|(?<=ticket=)[\w%-]+"
    r"|(?<=:)(?<!://)[^:/@\s\"]+(?=@)"
)
"""What a secret looks like: Slack's and OpenAI's keys, headers, a socket's address, a password inside an address."""
_SHORTEST = 6
"""Characters of a setting that is hidden by its value; shorter ones are words of any text."""


class _Masked(logging.Formatter):
    """A line of text in which nobody finds a secret."""

    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__(_TEXT)
        self._secrets = sorted((one for one in secrets if len(one) >= _SHORTEST), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        return self.masked(super().format(record))

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _SECRET.sub(_HIDDEN, text)


class _Json(_Masked):
    """A JSON object: time, level, logger, message, and row and exception where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self.masked(record.getMessage()),
        }
        if row := ROW.get():
            line["row"] = row
        if record.exc_info:
            line["exception"] = self.masked(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = self.masked(record.stack_info)
        return json.dumps(line, ensure_ascii=False)


class Lines(io.TextIOBase):
    """A stream whose lines go to the log, for what is printed where a program reads the log."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, map(str.rstrip, lines)):
            self._logger.log(logging.ERROR if line.startswith("error:") else logging.INFO, "%s", line)
        return len(text)


def handler(style: Style, secrets: Collection[str]) -> logging.Handler:
    """Return a handler that writes to stderr in a style; values of `secrets` are never shown."""
    made = logging.StreamHandler()
    made.setFormatter((_Json if style == "json" else _Masked)(secrets))
    return made


def set_up(style: Style, secrets: Collection[str]) -> None:
    """Log from INFO on; libraries that tell of each request only from WARNING on."""
    logging.basicConfig(level=logging.INFO, handlers=[handler(style, secrets)])
    logging.captureWarnings(capture=True)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
    for mute in _MUTE:
        logging.getLogger(mute).setLevel(logging.ERROR)
