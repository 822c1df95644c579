"""The values that a question and its answer are made of, and the ChatModel seam."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from ingest.atoms import AtomKind
from ingest.types import Arm, Chunk, Rule, Ticket

Shape = Literal["answered", "partial", "clarify", "not_found", "unavailable", "chat"]
"""`not_found` was looked for everywhere; `unavailable` could not be: a search did not answer, or a source was not read yet."""
Mode = Literal["naive", "hybrid", "direct", "gated", "agent"]
"""One search alone (by meaning, or hybrid); the whole flow without the loop, with the gate's choice, or always with the loop."""
Path = Literal["none", "direct", "agent"]
Decision = Literal["yes", "no", "due", "rule", "undecided"]
EvidenceKind = Literal["doc", "ticket", "table", "computed"]


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and the reader labels that decide what they may see."""

    user: str
    readers: frozenset[str]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """An earlier turn of the same thread, as far as a follow-up may refer to it."""

    id: str
    question: str
    standalone: str
    text: str
    shape: Shape
    verdict: str = ""
    tickets: tuple[str, ...] = ()
    customers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its clock and its thread."""

    text: str
    asker: Asker
    now: datetime
    """The desk's date and time, aware."""
    history: tuple[PastTurn, ...] = ()
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """The names that the tickets know, and the titles of the documents."""

    facets: Mapping[str, Sequence[str]]
    status: Sequence[str] = ()
    priority: Sequence[str] = ()
    customers: Sequence[str] = ()
    assignees: Sequence[str] = ()
    titles: Sequence[str] = ()
    actions: Sequence[str] = ()
    """What the settings declare that somebody did or that happened: "refund request", "charge"."""
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Word of the trade to other ways of saying it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Field, facet, event or action to what the company calls its column: "opened_at" is "Received"."""
    tickets_as_of: datetime | None = None
    """When the tickets were last imported or changed, None where they are read as they are."""

    @property
    def vocabulary(self) -> Mapping[str, Sequence[str]]:
        """What rules are keyed by: the facets and the priority."""
        return {**self.facets, "priority": self.priority}


Intent = Literal["lookup", "rule", "list", "count", "similar", "compare", "howto", "explain"]
"""What an answer has to be."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a question asks."""

    text: str
    """Standalone, without ticket numbers and customers' names."""
    intent: Intent = "lookup"
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Facet to the values of it that it names."""
    expects: frozenset[AtomKind] = frozenset()
    """Kinds of value that answer it: money for "how much", a duration for "how long"."""


@dataclass(frozen=True, slots=True)
class Route:
    """Which way a question went, and why."""

    path: Path
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One search or look-up: what was asked of which tool and what it found."""

    tool: str
    arguments: Mapping[str, Any]
    found: tuple[str, ...]
    """Sources of the evidence it brought, in order."""
    ms: int
    by: Literal["code", "model"] = "code"
    purpose: str = ""
    error: str = ""
    failed: Mapping[Arm, str] = field(default_factory=dict)
    """Arms of the search that did not answer, and why."""


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One numbered thing that was shown: a chunk, a ticket row, a table over tickets, or a computed date."""

    n: int
    """Number within its turn; an answer may cite nothing else."""
    kind: EvidenceKind
    id: str
    """Chunk id, `ticket:4812`, `table:…` or `computed:…`."""
    source: str
    """What a citation names: `docs:refunds.md`, `ticket:4812`, `tickets`, `computed`."""
    title: str
    section: str
    url: str
    text: str
    readers: frozenset[str]
    facets: Mapping[str, str] = field(default_factory=dict)
    chunk: Chunk | None = None
    ticket: Ticket | None = None
    tickets: tuple[Ticket, ...] = ()
    """Rows of a table."""
    unused: tuple[str, ...] = ()
    """For a table: words that restrict the question and that no filter of the table uses."""
    derived: tuple[str, ...] = ()
    """For a computed value: the formula's inputs as they stand in other items."""
    rests_on: tuple[str, ...] = ()
    """For a computed value: ids of the items that it rests on."""
    hop: int = 1
    query: str = ""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules its chunk states."""
        return self.chunk.rules if self.chunk else ()


@dataclass(frozen=True, slots=True)
class Citation:
    """One numbered source of an answer, with the words that support it."""

    n: int
    source: str
    title: str
    section: str
    url: str
    quote: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What code decided, with its reasons; `text` cites evidence numbers."""

    decision: Decision
    text: str
    used: tuple[str, ...]
    """Ids of the evidence items that decide it."""
    rule: Rule | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Words of the question that the rule does not speak of; what the sources say of them may stand beside it."""
    overruled: tuple[str, ...] = ()
    """Ids of the evidence items whose rules say something else and lost."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a question cost."""

    calls: int = 0
    searches: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    """True where a server sent no usage and the tokens were estimated."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.searches + other.searches,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request; evidence is typed, an adapter renders it into its prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    evidence: tuple[EvidenceItem, ...] = ()
    now: datetime | None = None
    names: Gazetteer | None = None
    """The names that the asker may know; whoever may not read tickets gets none of theirs."""
    decided: bool = False
    """Code has decided all that is asked, yes or no: nothing need be quoted beside it."""
    calls: tuple[ToolCall, ...] = ()
    """For an assistant message: the calls it made."""
    call_id: str = ""
    """For a tool message: the call it answers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    left_out: str = ""
    """For the trace alone: what was said and is no answer, such as truncated text."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model is told about a tool: closed, typed, read-only."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a question must stop, in one value."""

    turns: int = 6
    searches: int = 12
    tokens: int = 60_000
    """Prompt and completion together."""
    seconds: float = 60.0


@dataclass(slots=True)
class Budget:
    """What is left of the limits; the only mutable value of a question besides its evidence."""

    limits: Limits
    deadline: float
    """Monotonic seconds."""
    turns: int = 0
    spent: Usage = field(default_factory=Usage)

    @classmethod
    def start(cls, limits: Limits) -> Budget:
        """Start the clock of one question."""
        return cls(limits, time.monotonic() + limits.seconds)

    @property
    def model_deadline(self) -> float:
        """Monotonic seconds until which a model is waited for; the last tenth is for answering without it."""
        return self.deadline - self.limits.seconds / 10

    def add(self, usage: Usage) -> None:
        """Spend."""
        self.spent = self.spent + usage

    def exhausted(self, keep: int = 0) -> str:
        """Return the reason to stop, or an empty string; the one place where limits are read.

        `keep` are the tokens that must be left.
        """
        if time.monotonic() >= self.model_deadline:
            return f"time limit of {self.limits.seconds:g} seconds"
        if self.turns >= self.limits.turns:
            return f"limit of {self.limits.turns} turns"
        if self.spent.searches >= self.limits.searches:
            return f"limit of {self.limits.searches} searches"
        if self.spent.input_tokens + self.spent.output_tokens + keep >= self.limits.tokens:
            return f"limit of {self.limits.tokens} tokens"
        return ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the desk says to one question, and how it came about."""

    shape: Shape
    text: str
    route: Route
    standalone: str
    """The question as it was searched."""
    verdict: Verdict | None = None
    citations: tuple[Citation, ...] = ()
    used: tuple[EvidenceItem, ...] = ()
    """Every item that decided or supported the answer, cited or not."""
    steps: tuple[Step, ...] = ()
    stop: str = "answered"
    gaps: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    replies: tuple[Reply, ...] = ()
    """Recorded model outputs, in order."""
    rejected: tuple[str, ...] = ()
    """Why text of the model was not shown."""
    rankings: tuple[tuple[str, ...], ...] = ()
    """What each search and each look-up by key returned, in the order they were made: sources, best first."""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of each stage, in their order; together they are the time of the answer."""

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """The tickets that it used; those of a table count where it holds one."""
        rows = [item.tickets for item in self.used if item.kind == "table" and len(item.tickets) == 1]
        return (*(item.ticket for item in self.used if item.ticket), *(row for of in rows for row in of))


class ChatModel(Protocol):
    """A language model, or what stands in for one."""

    @property
    def name(self) -> str:
        """Name for logs and traces."""
        ...

    @property
    def note(self) -> str:
        """Line under each answer that says how it was written; empty for a language model."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Return the next message; `tools` and `schema` are never given together. Raises ModelError."""
        ...
