"""Settings: one nested model, filled from defaults, `twohop.toml` and the environment."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ingest.config import (
    CalendarSettings,
    ChunkSettings,
    ElasticsearchSettings,
    EmbeddingSettings,
    Name,
    Section,
    SourceSettings,
    TicketSettings,
)
from ingest.errors import ConfigError

VENDOR_NAMES: Mapping[str, str] = {
    "SLACK_BOT_TOKEN": "slack_bot_token",
    "SLACK_APP_TOKEN": "slack_app_token",
    "SLACK_SIGNING_SECRET": "slack_signing_secret",
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_BASE_URL": "openai_base_url",
    "ELASTICSEARCH_URL": "elasticsearch.url",
    "ELASTICSEARCH_API_KEY": "elasticsearch.api_key",
    "ELASTICSEARCH_USERNAME": "elasticsearch.username",
    "ELASTICSEARCH_PASSWORD": "elasticsearch.password",
    "ELASTICSEARCH_CA_CERTS": "elasticsearch.ca_certs",
    "ELASTICSEARCH_FINGERPRINT": "elasticsearch.fingerprint",
    "DATABASE_URL": "database_url",
    "TICKETS_DATABASE_URL": "tickets_database_url",
}
"""Names that people already know, and the setting each one fills."""

SECRETS = frozenset({"openai_api_key", "slack_bot_token", "slack_app_token", "slack_signing_secret"})


_NOT_SHOWN = SECRETS | {f"elasticsearch{of}" for of in ("", ".api_key", ".password")}
"""What no message holds; a section holds its secrets."""
_PLAIN_ADDRESS = r"(\w+://)?[\w-]+((\.[\w-]+)+(:\d{1,5})?|:\d{1,5})/?"
"""An address that can hold neither a password nor a key."""


class LimitSettings(Section):
    """Where a question must stop."""

    turns: Annotated[int, Field(ge=1, le=50)] = 6
    """Most turns of the loop."""
    searches: Annotated[int, Field(ge=1, le=200)] = 12
    """Most searches and look-ups of a question."""
    tokens: Annotated[int, Field(ge=1000)] = 60_000
    """Most tokens of a question, prompt and completion together."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """Longest time for a question."""


class ChatSettings(Section):
    """How the language model is called."""

    context_tokens: Annotated[int, Field(ge=2000)] = 16_000
    """The model's context window, prompt and reply together; `twohop doctor` measures it. Ollama's default is 4096."""
    at_once: Annotated[int, Field(ge=1, le=100)] = 4
    """Most requests in flight at once."""


class RetrievalSettings(Section):
    """How much is searched and shown."""

    candidates: Annotated[int, Field(ge=5, le=500)] = 50
    """Places taken from each arm before fusion."""
    shown: Annotated[int, Field(ge=1, le=50)] = 10
    """Chunks of one search that become evidence."""
    pool: Annotated[int, Field(ge=2, le=100)] = 20
    """Most chunks of a question's evidence; tickets and what decides the verdict are not counted."""
    rules: Annotated[int, Field(ge=5, le=500)] = 60
    """Rule-bearing chunks that the verdict looks at."""


class AccessSettings(Section):
    """Who belongs to which group; every group is a reader label."""

    groups: dict[Name, tuple[Name, ...]] = {}
    """Reader label to user ids, for example `support = ["U012AB3CD"]`."""
    terminal_user: str = "terminal"
    """Name of whoever asks in the terminal; in the support group unless `--as` names somebody else."""


class SlackSettings(Section):
    """How questions of Slack are answered."""

    admins: tuple[Name, ...] = ()
    """User ids that may start an index run with `/twohop reindex`, for example `["U012AB3CD"]`."""
    shared_channels: tuple[Name, ...] = ()
    """Ids of channels shared with other organisations in which members are answered all the same; outsiders read along."""
    parallel: Annotated[int, Field(ge=1, le=100)] = 4
    """Most questions answered at the same time, each in a thread of its own; who has the fewest under way is next."""
    lease_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How long after the death of a process another one takes over its questions."""
    drain_seconds: Annotated[float, Field(ge=0)] = 20.0
    """How long a stopping process goes on with what it is answering; the rest waits for the next start."""
    api_url: str = "https://slack.com/api/"
    """Address of Slack's Web API; another one only for a local Slack."""


class SyncSettings(Section):
    """When `twohop serve` reads the sources again."""

    every_minutes: Annotated[float, Field(ge=0)] = 60.0
    """Minutes between two index runs; 0 leaves them to `/twohop reindex` and `twohop index`."""
    schedule: dict[Name, Name] = {}
    """Source to a time of its own: minutes (`15`) or a cron line in the desk's zone (`0 3 * * mon-fri`); `tickets` are one too."""
    jitter_seconds: Annotated[float, Field(ge=0)] = 60.0
    """Longest random delay of an index run, and at most a tenth of its interval."""
    deadline_minutes: Annotated[float, Field(gt=0)] = 60.0
    """An index run that takes longer is ended; the next one goes on where it was."""
    lease_seconds: Annotated[float, Field(gt=0)] = 60.0
    """How long after the death of an index run's process another run may start."""
    golden: Path | None = None
    """Labelled questions, one JSON object a line with `text` and `sources`: a rebuild that finds less is refused."""
    golden_margin: Annotated[float, Field(ge=0, le=1)] = 0.02
    """By how much their recall may fall."""
    keep_generations: Annotated[int, Field(ge=1, le=20)] = 2
    """Earlier indexes kept after a rebuild, for `twohop index rollback`; each takes as much disk as the live one."""


class HealthSettings(Section):
    """Where `twohop serve` says how it is: `/healthz`, `/livez` and `/metrics`, for people on the inside only."""

    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of `/healthz`, `/livez` and `/metrics`; 0 opens none."""
    host: str = "127.0.0.1"
    """Address that the port is opened on; `0.0.0.0` in a container."""
    queue_seconds: Annotated[float, Field(gt=0)] = 300.0
    """How long a question may wait for its answer before `/healthz` says that something is wrong."""


class WordSettings(Section):
    """Words of the trade, beyond what the tickets and documents teach."""

    synonyms: dict[Name, tuple[Name, ...]] = {
        "refund": (
            "money back",
            "pay back",
            "paid back",
            "moneyback",
            "reimbursement",
            "reimburse",
            "reembolso",
            "reembolsar",
            "devolución",
            "devolver el dinero",
        ),
        "sla": ("service level", "overdue", "breach", "breached", "target", "targets"),
        "first response": (
            "first reply",
            "first answer",
            "respond",
            "answer a ticket",
            "have to answer",
            "be answered",
            "owe an answer",
            "owe a reply",
            "owe them an answer",
            "answered in time",
            "answered on time",
            "answered late",
            "answered too late",
            "answered fast enough",
            "did we answer",
            "replied",
            "reply",
            "must answer",
            "reply time",
            "response time",
            "primera respuesta",
        ),
        "resolution": ("resolved", "resolve", "solved", "solve", "fixed", "fix within"),
    }
    """Topic word to other ways of saying it; used to find rules, never to write answers."""
    contact: str = "the support lead"
    """Whom to ask when the answer is not in the sources."""


class Settings(BaseSettings):
    """Everything that can be set. Environment names are `TWOHOP_` plus the path joined with `__`."""

    model_config = SettingsConfigDict(
        env_prefix="TWOHOP_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    data: Path = Path(".twohop")
    """Folder of the index and the databases."""
    company: str = ""
    """Name shown in greetings."""
    model: str = ""
    """Name of the language model, as its server knows it; empty answers without one. A key alone changes nothing."""
    index: Literal["sqlite", "elastic"] = "sqlite"
    """Search backend: files in `data`, or the Elasticsearch of the `elasticsearch` settings."""
    log: Literal["text", "json"] = "text"
    """How `twohop serve` logs: lines for a person, or one JSON object a line."""
    slack_bot_token: str = ""
    """`SLACK_BOT_TOKEN`, `xoxb-…`: who the bot is in Slack; needed by `twohop serve`."""
    slack_app_token: str = ""
    """`SLACK_APP_TOKEN`, `xapp-…`: opens the connection (Socket Mode); needed by `twohop serve`."""
    slack_signing_secret: str = ""
    """`SLACK_SIGNING_SECRET`; Socket Mode, the only delivery so far, does not need it."""
    openai_api_key: str = ""
    """`OPENAI_API_KEY`; used only when `TWOHOP_MODEL` is set."""
    openai_base_url: str = ""
    """`OPENAI_BASE_URL`, of any server that speaks Chat Completions; used only when `TWOHOP_MODEL` is set."""
    database_url: str = ""
    """`DATABASE_URL`: our own state, `postgresql://user:password@host/name` or `sqlite:///file.db`; empty uses a file in `data`."""
    tickets_database_url: str = ""
    """`TICKETS_DATABASE_URL`: the company's own ticket database, SQLite or PostgreSQL, which is only read (`tickets.table`); empty uses a SQLite file in `data`, filled by imports."""
    elasticsearch: ElasticsearchSettings = ElasticsearchSettings()
    sources: SourceSettings = SourceSettings()
    chunks: ChunkSettings = ChunkSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    calendar: CalendarSettings = CalendarSettings()
    tickets: TicketSettings = TicketSettings()
    limits: LimitSettings = LimitSettings()
    chat: ChatSettings = ChatSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    access: AccessSettings = AccessSettings()
    slack: SlackSettings = SlackSettings()
    sync: SyncSettings = SyncSettings()
    health: HealthSettings = HealthSettings()
    words: WordSettings = WordSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment over file: the file's values arrive as init arguments."""
        return (env_settings, init_settings)


def load(file: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read settings from the environment over `file` over the defaults.

    `file` None looks for `twohop.toml` in the working folder. Raises ConfigError for unknown names and bad values,
    naming the value and where it stands.
    """
    environ = os.environ if environ is None else environ
    chosen = file or Path("twohop.toml")
    values: dict[str, Any] = {}
    if chosen.is_file():
        try:
            values = tomllib.loads(chosen.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(
                f"{str(chosen)!r} cannot be read: {error}; mend the file and try again"
            ) from error
    elif file is not None:
        raise ConfigError(f"settings file {str(file)!r} does not exist; check --config or TWOHOP_CONFIG")
    for name, setting in VENDOR_NAMES.items():
        if environ.get(name):
            if name.endswith(("_KEY", "_TOKEN", "_SECRET")) and not re.fullmatch(r"[!-~]+", environ[name]):
                raise ConfigError(
                    f"{name} holds a character that no key has, such as a space or “…”; copy it again"
                )
            section, dot, key = setting.rpartition(".")
            (values.setdefault(section, {}) if dot else values)[key] = environ[name]
    _refuse_unknown(environ)
    _refuse_no_json(environ)
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        value = first.get("input")
        hidden = where in _NOT_SHOWN
        if where == "elasticsearch.url":
            hidden = not re.fullmatch(_PLAIN_ADDRESS, str(value))
        given = "********" if hidden else repr(value)
        raise ConfigError(
            f"setting {where} = {given} cannot be used: {first['msg'].removeprefix('Value error, ')}; see the settings table in README.md"
        ) from error


def _named(environ: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each name of ours with its path in the settings."""
    for name in environ:
        if name.startswith("TWOHOP_"):
            yield name, name.removeprefix("TWOHOP_").lower().split("__")


def _refuse_no_json(environ: Mapping[str, str]) -> None:
    """Refuse a list or a table that is not written as JSON, which the settings library only names by its section."""
    for name, path in _named(environ):
        field = Settings.model_fields.get(path[0])
        inner = getattr(field.annotation, "model_fields", {}) if field else {}
        if len(path) == 2:
            kind = get_origin(inner[path[1]].annotation)
        else:
            kind = dict if inner and len(path) == 1 else None
        if kind not in (dict, tuple):
            continue
        wanted = list if kind is tuple else dict
        try:
            fits = isinstance(json.loads(environ[name]), wanted)
        except ValueError:
            fits = False
        if not fits:
            given = "********" if path == ["elasticsearch"] else repr(environ[name])
            example = '["first", "second"]' if wanted is list else '{"name": "value"}'
            raise ConfigError(
                f"{name} = {given} cannot be used: it is not a JSON {'list' if wanted is list else 'object'}; "
                f"write it as {name}='{example}', or set it in twohop.toml"
            )


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = set(Settings.model_fields) | {"config"}
    for name, path in _named(environ):
        section = Settings.model_fields.get(path[0])
        inner = getattr(section.annotation, "model_fields", None) if section else None
        if path[0] not in known or (len(path) > 1 and (inner is None or path[1] not in inner)):
            raise ConfigError(
                f"unknown setting {name!r} in the environment; see the settings table in README.md"
            )


def unused(settings: Settings) -> tuple[str, ...]:
    """Return one line for each name that is set and changes nothing."""
    lines: list[str] = []
    if not settings.model:
        names = [
            name for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL") if getattr(settings, VENDOR_NAMES[name])
        ]
        lines += [f"{name} is set but TWOHOP_MODEL is not, so no language model is used" for name in names]
    if settings.index != "elastic" and settings.elasticsearch != ElasticsearchSettings():
        lines.append("Elasticsearch is set but TWOHOP_INDEX is not elastic, so it is not used")
    return tuple(lines)


def secret_values(settings: Settings) -> tuple[str, ...]:
    """Return what must never be shown, each value that is set; a password inside an address is none of them."""
    section = settings.elasticsearch
    values = [str(getattr(settings, name)) for name in sorted(SECRETS)]
    values += [part.get_secret_value() for part in (section.api_key, section.password)]
    return tuple(value for value in values if value)


def table() -> str:
    """Return the README's settings table, generated from the settings' own docstrings."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        section = field.annotation
        inner = getattr(section, "model_fields", None)
        if inner is None:
            rows.append(_row(name, field.default, field.description))
        else:
            rows += [_row(f"{name}.{key}", part.default, part.description) for key, part in inner.items()]
    return "\n".join(rows)


def _row(name: str, default: object, description: str | None) -> str:
    shown = "…" if isinstance(default, dict) and default else str(default)
    if isinstance(default, tuple | list):
        shown = ", ".join(str(part) for part in default)
    meaning = " ".join((description or "").split()).replace("|", "\\|")
    return f"| `{name}` | {f'`{shown}`' if default else ''} | {meaning} |"
