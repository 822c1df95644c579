"""Settings of everything that comes before a question; `bot/config.py` nests them and reads the environment."""

from __future__ import annotations

import re
from datetime import date, time
from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from ingest.types import Authority

BUNDLED_MODEL = "all-MiniLM-L6-v2"


def _not_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty; write a text or take the entry out")
    return value


def _written(pattern: str, how: str) -> AfterValidator:
    """Return a validator that says in words `how` a value is written that does not fit the pattern."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(how)
        return value

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(_not_empty)]
"""An entry of a list or of a table, which is never empty."""


class Section(BaseModel):
    """A settings section: unknown names are refused, and a section never changes after the start."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class SourceSettings(Section):
    """Where documents come from, and who may read what."""

    paths: tuple[Path, ...] = ()
    """Folders (or single files) of Markdown, text and HTML."""
    link: str = ""
    """Prefix of citation links, for example `https://help.example.com/`; empty links to the file itself."""
    max_bytes: Annotated[int, Field(gt=0)] = 10_000_000
    """Larger files are reported and skipped."""
    readers: dict[Name, Annotated[tuple[Name, ...], Field(min_length=1)]] = {}
    """Path glob to reader labels, for documents whose front matter names none; the first match wins."""
    authority: dict[Name, Authority] = {}
    """Path glob to the kind of text (`terms`, `policy`, `help`, `faq`, `chat`); front matter wins."""


class ChunkSettings(Section):
    """How documents are cut."""

    max_tokens: Annotated[int, Field(ge=32, le=8192)] = 200
    """Most tokens of the embedder's own tokenizer in a chunk, the context line counted."""
    overlap_tokens: Annotated[int, Field(ge=0)] = 40
    """Tokens repeated when a section must be cut; at most a quarter of `max_tokens`."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> Self:
        # The default gives way to a small max_tokens; what somebody wrote is not changed in silence.
        if "overlap_tokens" in self.model_fields_set and self.overlap_tokens > self.max_tokens // 4:
            raise ValueError(
                f"overlap_tokens {self.overlap_tokens} is more than a quarter of max_tokens {self.max_tokens}; "
                f"set at most {self.max_tokens // 4}"
            )
        return self


class EmbeddingSettings(Section):
    """Which model embeds."""

    model: str = BUNDLED_MODEL
    """`all-MiniLM-L6-v2` is bundled; any other name or path goes through sentence-transformers' own loading."""
    batch_size: Annotated[int, Field(gt=0)] = 8
    """Texts embedded at once."""


class ElasticsearchSettings(Section):
    """Where the index is when it is an Elasticsearch. A certificate is always checked."""

    url: str = ""
    """`ELASTICSEARCH_URL`, for example `https://search.example.com:9200`, with the path that a proxy passes on, if any; used only when `TWOHOP_INDEX` is `elastic`."""
    api_key: SecretStr = SecretStr("")
    """`ELASTICSEARCH_API_KEY`, encoded as Elasticsearch shows it."""
    username: str = ""
    """`ELASTICSEARCH_USERNAME`, where there is no API key."""
    password: SecretStr = SecretStr("")
    """`ELASTICSEARCH_PASSWORD` of that user."""
    ca_certs: Path | None = None
    """`ELASTICSEARCH_CA_CERTS`: PEM file of the CA that signed the server's certificate, where the system does not know it."""
    fingerprint: Annotated[
        str,
        _written(
            r"(([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2})?",
            "write the 32 pairs of hexadecimal digits of a SHA-256 fingerprint, with or without colons between them",
        ),
    ] = ""
    """`ELASTICSEARCH_FINGERPRINT`: SHA-256 of the server's own certificate, instead of a CA."""
    prefix: Annotated[
        str,
        _written(
            r"[a-z0-9][a-z0-9_.-]{0,99}",
            "write small letters, digits, dots, hyphens and underscores, 100 at most, beginning with a letter or a digit",
        ),
        _written(
            r"(?!.*-(generation|previous|write)(-\d+)?$|.*-lease$).*",
            "it looks like an index of a bot with a shorter prefix; let it end otherwise than in -generation, -previous, "
            "-write or -lease",
        ),
    ] = "twohop"
    """Name of the alias, and beginning of the names of all indices; two bots on one cluster need two."""
    language: Annotated[
        str,
        _written(r"[a-z_0-9]+", "write small letters, digits and underscores, as in english or light_german"),
    ] = "english"
    """Stemmer of the texts, by Elasticsearch's name (`english`, `light_german`, `light_spanish`); another one needs a rebuild."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 4.0
    """Longest time that a question waits for one search; an index run waits longer."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        if value and not re.match(r"https?://[^/@\s]+(/[^@\s]*)?$", value):
            # The value may hold a password, so that it is not shown.
            raise ValueError(
                "write it as https://host:port, and a user in ELASTICSEARCH_USERNAME and ELASTICSEARCH_PASSWORD"
            )
        return value

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.api_key.get_secret_value() and self.username:
            raise ValueError("an API key and a user name are both set; keep one of them")
        if bool(self.username) != bool(self.password.get_secret_value()):
            raise ValueError(
                "a user name needs a password, and a password a user name; set both or an API key"
            )
        if self.ca_certs and self.fingerprint:
            raise ValueError("a CA file and a fingerprint are both set; keep one of them")
        return self


class CalendarSettings(Section):
    """The desk's clock: what a day, a business day and a business hour are."""

    zone: str = "UTC"
    """IANA time zone of the desk."""
    opens: time = time(9)
    """Start of the business day."""
    closes: time = time(17)
    """End of the business day."""
    workdays: Annotated[tuple[Annotated[int, Field(ge=0, le=6)], ...], Field(min_length=1)] = (0, 1, 2, 3, 4)
    """Business days, Monday is 0."""
    holidays: tuple[date, ...] = ()
    """Days on which the desk is closed."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(
                f"unknown time zone {value!r}; use an IANA name such as Europe/Madrid"
            ) from error
        return value

    @model_validator(mode="after")
    def _closes_later(self) -> Self:
        if self.closes <= self.opens:
            raise ValueError(f"closes {self.closes} must be later than opens {self.opens}")
        return self


class TicketSettings(Section):
    """What a ticket's columns mean. Left empty, they are guessed from the file and `doctor` prints the guess."""

    csv: tuple[Path, ...] = ()
    """Ticket files that each index run imports; what one brought before and has no more is removed."""
    table: str = ""
    """Table or view of `TICKETS_DATABASE_URL` that holds the tickets, with its schema if need be (`desk.cases`); it is only read."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 5.0
    """Longest time for a connection to `TICKETS_DATABASE_URL`, and for a statement there."""
    stale_after_hours: Annotated[float, Field(ge=0)] = 72.0
    """An answer from tickets says how old they are if that is longer ago: their import, or a database's newest change; 0 never does."""
    prefixes: tuple[Name, ...] = ("TCK-",)
    """What people write before a ticket number; `#` always works."""
    number_pattern: str = r"\d{3,7}"
    """Regular expression of a number without its prefix."""
    columns: dict[Name, Name] = {}
    """Fixed field (number, customer, status, priority, assignee, subject, body, resolution, opened_at, updated_at) to column."""
    facets: dict[Name, Name] = {}
    """Facet name to column: what the company keys its rules by (plan, billing, product, region, …)."""
    events: dict[Name, Name] = {}
    """Anchor name to column: what happened to the customer (`charge = "charged_on"`)."""
    actions: dict[Name, Name] = {}
    """Action name to column: what somebody did (`"refund request" = "refund_requested_on"`)."""
    personal: tuple[Name, ...] = ()
    """Columns with personal data: kept out of prompts and of the index."""
    day_first: bool = False
    """How to read 02/09/2025; an unambiguous column overrides it."""
    readers: tuple[Name, ...] = ("support",)
    """Who may read tickets."""
    index_max_age_days: Annotated[int, Field(gt=0)] = 1095
    """Older tickets are not searched by similarity; they stay in SQL."""
    index_max_count: Annotated[int, Field(gt=0)] = 20_000
    """Most tickets searched by similarity, newest first."""

    @field_validator("number_pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"number_pattern {value!r} is not a regular expression: {error}") from error
        if re.fullmatch(value, ""):
            raise ValueError(f"number_pattern {value!r} fits an empty number; ask for at least one character")
        return value
