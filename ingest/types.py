"""The values that ingest hands to everyone else: documents, chunks, rules, tickets, hits and filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Literal

Kind = Literal["doc", "ticket"]
Arm = Literal["lexical", "dense", "codes"]
Authority = Literal["terms", "policy", "help", "faq", "chat"]
Unit = Literal["hour", "business_hour", "day", "business_day", "week", "month", "year"]
Polarity = Literal["allows", "forbids"]

MEMBERS = "members"
"""Reader label that every signed-in member carries."""

AUTHORITY: Mapping[Authority, int] = MappingProxyType(
    {"terms": 4, "policy": 3, "help": 2, "faq": 1, "chat": 0}
)
"""Rank of each kind of text when two disagree: terms beat policies beat help pages beat FAQs beat chat."""

EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Document:
    """One document as its source gave it, with its text as Markdown."""

    uri: str
    """`source:relative/path`, unique over all sources."""
    source: str
    revision: str
    """Opaque: only compared, never parsed."""
    title: str
    text: str
    link: str
    """Where a reader can open it."""
    kind: Kind = "doc"
    readers: frozenset[str] = frozenset({MEMBERS})
    facets: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    authority: Authority = "help"
    effective_from: date | None = None
    superseded_on: date | None = None
    """First day on which the document is no longer in force."""
    language: str = ""
    """Code as its author gave it, without a region ("es" for es-MX); empty where nobody did."""
    notes: tuple[str, ...] = ()
    """What its author should look at; a run's report names it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule stated in text: how long, from when, whether it allows or forbids.

    Which facet values it is about (its scope) is read from `headings`, `labels` and `text` when a question is
    asked, because the vocabulary of facet values lives in the ticket tables and changes without the documents.
    """

    text: str
    """The sentence, or for a table cell the row written out."""
    amount: int | None
    """None where the rule has no duration: it forbids ("monthly subscriptions are not refunded"), or allows without limit."""
    unit: Unit | None
    polarity: Polarity
    anchor: str | None = None
    """What the time runs from, as the text names it ("charge", "delivery", "opening")."""
    before: bool = False
    """True where the time runs up to the anchor ("at least 30 days before renewal")."""
    hedges: tuple[str, ...] = ()
    """Words that weaken it ("as a rule", "normally")."""
    conditions: tuple[str, ...] = ()
    """Clauses that limit it ("if fewer than ten invoices were issued", "unless …")."""
    headings: tuple[str, ...] = ()
    """Document title, then the heading path."""
    labels: tuple[str, ...] = ()
    """For a table cell: its column header, then the row's label cells as `header: value`."""
    uri: str = ""
    chunk: str = ""
    """Id of the chunk that carries it."""
    authority: Authority = "help"
    effective_from: date | None = None
    superseded_on: date | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document small enough for the embedder, with a context line in front."""

    id: str
    """`uri#position`: deterministic, so that writing it twice is harmless."""
    uri: str
    position: int
    title: str
    headings: tuple[str, ...]
    """Heading path below the title."""
    text: str
    """Context line, newline, body: what both arms index."""
    kind: Kind = "doc"
    link: str = ""
    readers: frozenset[str] = frozenset({MEMBERS})
    facets: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    authority: Authority = "help"
    effective_from: date | None = None
    superseded_on: date | None = None
    language: str = ""
    rules: tuple[Rule, ...] = ()

    @property
    def body(self) -> str:
        """The text without its context line."""
        return self.text.partition("\n")[2]

    @property
    def section(self) -> str:
        """The heading path as one line, empty at the top of a document."""
        return " > ".join(self.headings)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its fused score and its 1-based rank in each arm that found it."""

    chunk: Chunk
    score: float
    ranks: Mapping[Arm, int]


@dataclass(frozen=True, slots=True)
class Scored:
    """One place in one arm's ranking; scores of different arms are never compared."""

    id: str
    """Of the chunk."""
    score: float
    read: Callable[[], Chunk] = field(repr=False, compare=False)
    """Returns the chunk as it was found; most places of a ranking are never looked at."""

    @property
    def chunk(self) -> Chunk:
        """The chunk, read anew each time."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Rankings:
    """The separate rankings of one search, best first, and why an arm is missing."""

    arms: Mapping[Arm, tuple[Scored, ...]]
    failed: Mapping[Arm, str] = field(default_factory=dict)
    seconds: Mapping[Arm, float] = field(default_factory=dict, compare=False)
    """How long each arm took, where they run in this process."""


@dataclass(frozen=True, slots=True)
class Where:
    """Hard filters of a search; `readers` is who asks and is never relaxed."""

    readers: frozenset[str]
    kind: Kind = "doc"
    facets: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Chunks must carry each of these values."""
    rules_only: bool = False
    """Only chunks that state at least one rule."""
    language: str = ""
    """Only chunks of documents that say to be in this language; empty keeps all."""
    in_force_on: date | None = None
    """Leave out chunks whose document was not in force on that day; None keeps every version."""


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One line of what the index holds."""

    uri: str
    source: str
    title: str
    link: str
    kind: Kind
    readers: frozenset[str]
    authority: Authority
    effective_from: date | None
    superseded_on: date | None
    indexed_at: datetime
    chunks: int


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket row: fixed fields, declared facets, event times and action times."""

    number: str
    """Canonical: without `#` or prefix, upper case."""
    customer: str
    subject: str
    body: str = ""
    resolution: str = ""
    status: str = ""
    priority: str = ""
    assignee: str = ""
    opened_at: datetime | None = None
    updated_at: datetime | None = None
    facets: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    events: Mapping[str, date | datetime] = field(default_factory=dict)
    """What happened to the customer, by anchor name ("charge"); `opening` is there if `opened_at` is, as a day where that has no time."""
    actions: Mapping[str, date | datetime] = field(default_factory=dict)
    """What somebody did, by name ("refund request", "first response")."""
    personal: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Personal columns: stored, never put into a prompt or an answer unless asked by number."""
    readers: frozenset[str] = frozenset({"support"})
    unread: Mapping[str, str] = field(default_factory=dict)
    """Dates that are there and cannot be read: name of the event (`opening` too) or action to the reason."""
    imported_at: datetime | None = None

    @property
    def opened(self) -> date | datetime | None:
        """When it was opened, for people: a day where nobody wrote a time."""
        return self.events.get("opening", self.opened_at)
