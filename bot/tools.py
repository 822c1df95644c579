"""The tools: typed, read-only look-ups and searches, with the asker's rights and inside the question's case.

A tool's failure is text for the model. Ids must come from the question or from what was fetched by key, never from
free text; a question about one case never reads another customer's tickets unless it asks for them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.evidence import Evidence, from_ticket
from bot.filters import described, readings
from bot.gate import TIMED, asks
from bot.retrieve import Found, Retriever, Searches
from bot.types import Budget, EvidenceItem, Gazetteer, Question, Step, Tool, ToolCall, Usage
from ingest.atoms import atoms, resolve_date
from ingest.dates import Calendar, deadline, format_date, format_duration
from ingest.errors import TicketsUnavailable, TwohopError
from ingest.tickets import TicketFilter, TicketPage, TicketStore
from ingest.types import Arm, Ticket, Unit, Where
from ingest.words import fold, words

T = TypeVar("T")


class Run(Protocol):
    """Runs synchronous work on an executor and waits for it."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what `work` returns."""
        ...


class Arguments(BaseModel):
    """Arguments of a tool: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SearchDocs(Arguments):
    """Search the company's documents (FAQ, terms, policies, help pages) by words and by meaning."""

    query: Annotated[str, Field(min_length=1, max_length=1000)]
    kind: Literal["any", "rules"] = "any"
    """`rules` returns only passages that state a duration, a deadline or a prohibition."""
    facets: dict[str, str] = {}
    """Facet name to value, for example {"plan": "Team"}."""


class SimilarTickets(Arguments):
    """Find tickets whose text resembles a text, or another ticket given by its number."""

    text: str = ""
    number: str = ""


class GetTicket(Arguments):
    """Read one ticket by its number."""

    number: Annotated[str, Field(min_length=1, max_length=60)]


Values = str | list[str]


class FindTickets(Arguments):
    """List or count tickets. Every filter given must hold; several values of one mean any of them. For "how many per
    plan" use count_by. For what somebody did or did not do ("asked for a refund", "no first reply yet") use has and lacks."""

    customer: Values | None = None
    status: Values | None = None
    priority: Values | None = None
    assignee: Values | None = None
    facets: dict[str, Values] = {}
    """Facet name to value, for example {"plan": "Team"}."""
    not_customer: Values | None = None
    not_status: Values | None = None
    not_priority: Values | None = None
    not_assignee: Values | None = None
    not_facets: dict[str, Values] = {}
    has: Values | None = None
    """Actions or events that took place, by their declared names, or fields that are filled; all of them."""
    lacks: Values | None = None
    """Actions or events that did not take place, or fields that are empty; all of them."""
    has_from: date | None = None
    """First day of what is named under has."""
    has_to: date | None = None
    """Last day of it, included."""
    opened_from: date | None = None
    opened_to: date | None = None
    """Last day, included."""
    updated_from: date | None = None
    updated_to: date | None = None
    text: Values | None = None
    """Words that must all occur in subject, body or resolution; of a list of texts, one must.
    In double quotes they must stand side by side."""
    not_text: Values | None = None
    order: Literal["newest", "oldest", "updated", "priority"] = "newest"
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    count_by: str | None = None
    """customer, status, priority, assignee or a facet."""
    at_least: Annotated[int | None, Field(ge=1)] = None
    """With count_by: only values with so many tickets ("customers with more than 2 tickets" is 3)."""
    at_most: Annotated[int | None, Field(ge=1)] = None


class ComputeDeadline(Arguments):
    """Compute the end of a period from a start date and a duration that both stand in the evidence."""

    start: date | datetime
    amount: Annotated[int, Field(ge=0, le=100_000)]
    unit: Unit


SCHEMAS: Mapping[str, type[Arguments]] = {
    "search_docs": SearchDocs,
    "similar_tickets": SimilarTickets,
    "get_ticket": GetTicket,
    "find_tickets": FindTickets,
    "deadline": ComputeDeadline,
}

NO_RIGHT = "you may not read tickets"
DOWN = "the search does not answer now; go on with the ticket look-ups, which do"
TOOLS: tuple[Tool, ...] = tuple(
    Tool(name, (model.__doc__ or "").strip(), model.model_json_schema()) for name, model in SCHEMAS.items()
)
"""The closed registry that a model is told."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call brought: text for the model, and the evidence behind it."""

    text: str
    items: tuple[EvidenceItem, ...] = ()
    error: str = ""
    failed: Mapping[Arm, str] = field(default_factory=dict)
    """Arms of the search behind it that did not answer, and why."""


class Toolbox:
    """The tools of one question."""

    def __init__(
        self,
        *,
        question: Question,
        standalone: str,
        evidence: Evidence,
        budget: Budget,
        retriever: Retriever,
        tickets: TicketStore,
        names: Gazetteer,
        calendar: Calendar,
        shown: int,
        compute: Run,
        store: Run,
        observe: Callable[[Step], None],
    ) -> None:
        self._question = question
        self._standalone = standalone
        self._evidence = evidence
        self._budget = budget
        self._retriever = retriever
        self._tickets = tickets
        self._names = names
        self._calendar = calendar
        self._shown = shown
        self._compute = compute
        self._store = store
        self._observe = observe
        self._listing = asyncio.Lock()
        """Lists are numbered in the order in which they were asked for."""
        self._past: dict[tuple[str, str], frozenset[str]] = {}
        self._hop = 1
        self._allowed: set[str] = set()
        self.steps: list[Step] = []
        self.rankings: list[tuple[str, ...]] = []
        """What each search and each look-up by key returned: sources, best first."""
        self.searches = Searches()
        self.repeats = 0
        self.gained = 0
        self.unavailable: list[str] = []
        """Why tickets could not be read, in words for the asker."""

    def about(self, standalone: str) -> None:
        """Set the question as it was rewritten."""
        self._standalone = standalone

    def allow(self, number: str) -> None:
        """Let a ticket be read that code found for the question's customer."""
        self._allowed.add(number)

    @property
    def _readers(self) -> frozenset[str]:
        return self._question.asker.readers

    async def call(
        self, call: ToolCall, *, by: Literal["code", "model"] = "model", purpose: str = ""
    ) -> Result:
        """Run one call; whatever goes wrong comes back as text that says what to do instead."""
        began = time.monotonic()
        arguments: dict[str, Any] = {}
        try:
            model = SCHEMAS.get(call.name)
            if model is None:
                raise TwohopError(f"there is no tool {call.name!r}; the tools are {', '.join(SCHEMAS)}")
            parsed = model.model_validate(_json(call.arguments))
            arguments = parsed.model_dump(mode="json", exclude_defaults=True)
            result = self._repeated(call.name, parsed) or await self._run(call.name, parsed)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            result = Result("", error=f"{where}: {first['msg']} (got {first.get('input')!r:.80})")
        except TicketsUnavailable as error:
            self.unavailable.append(str(error))
            result = Result("", error=str(error))
        except TwohopError as error:
            result = Result("", error=str(error))
        step = Step(
            tool=call.name,
            arguments=arguments,
            found=tuple(dict.fromkeys(item.source for item in result.items)),
            ms=round((time.monotonic() - began) * 1000),
            by=by,
            purpose=purpose,
            error=result.error,
            failed=result.failed,
        )
        self.steps.append(step)
        self._observe(step)
        return result

    def _repeated(self, name: str, arguments: Arguments) -> Result | None:
        """Answer a repeated call from memory: same tool, same filters, same or nearly the same words."""
        fields = arguments.model_dump(mode="json")
        query = str(fields.pop("query", fields.pop("text", "") or ""))
        key = (name, json.dumps(fields, sort_keys=True))
        tokens = frozenset(words(query))
        for (tool, filters), before in self._past.items():
            if (tool, filters.partition("\x00")[0]) != key:
                continue
            union = before | tokens
            if before == tokens or (union and len(before & tokens) / len(union) >= 0.8):
                self.repeats += 1
                return Result(
                    "", error="this was searched already; use its results or search for something else"
                )
        self._past[(name, f"{key[1]}\x00{len(self._past)}")] = tokens
        return None

    async def _run(self, name: str, arguments: Arguments) -> Result:
        self._budget.add(Usage(searches=1))
        match arguments:
            case SearchDocs():
                return await self._search_docs(arguments)
            case SimilarTickets():
                return await self._similar_tickets(arguments)
            case GetTicket():
                return await self._get_ticket(arguments)
            case FindTickets():
                async with self._listing:
                    return await self._find_tickets(arguments)
            case ComputeDeadline():
                return self._deadline(arguments)
            case _:
                raise AssertionError(name)

    async def search(self, query: str, where: Where, k: int, *, candidates: int | None = None) -> Found:
        """Search once, and keep what did not answer; after a search that was down no other is tried in this turn."""
        if stopped := self.searches.stopped:
            return stopped
        found = await self._compute(
            lambda: self._retriever.search(query, where, k, self._budget.deadline, candidates=candidates)
        )
        self.keep(found)
        return found

    def keep(self, found: Found) -> None:
        """Keep what a search returned and what it lacked."""
        self.searches.add(found)
        self.rankings.append(tuple(dict.fromkeys(hit.chunk.uri for hit in found.hits)))

    def _where(self, **filters: Any) -> Where:
        return Where(readers=self._readers, **filters)

    async def _search_docs(self, arguments: SearchDocs) -> Result:
        known = await self._store(self._tickets.values)
        for name in arguments.facets:
            if name not in known:
                raise TwohopError(f"there is no facet {name!r}; the facets are {', '.join(known)}")
        day = in_force_on(self._standalone, self._question.now.date())
        where = self._where(facets=arguments.facets, rules_only=arguments.kind == "rules", in_force_on=day)
        found = await self.search(arguments.query, where, self._shown)
        told = ""
        if not found.hits and not found.down and arguments.facets:
            told = "nothing carries these facets; searched without them. "
            where = self._where(rules_only=arguments.kind == "rules", in_force_on=day)
            found = await self.search(arguments.query, where, self._shown)
        if found.down:
            return Result("", error=DOWN, failed=found.failed)
        if found.failed:
            told += f"{self.searches.lack}: there may be more. "
        if not found.hits:
            return Result(f"{told}nothing found for {arguments.query!r}", failed=found.failed)
        new = self._evidence.add_hits(found.hits, query=arguments.query, hop=self._hop)
        self._hop += 1
        self.gained += len(new)
        items = tuple(item for hit in found.hits if (item := self._evidence.by_id(hit.chunk.id)))
        return Result(told + _list(items), items, failed=found.failed)

    def _check_rights(self) -> None:
        if not self._readers & set(self._tickets.settings.readers):
            raise TwohopError(NO_RIGHT)

    def _case_locked(self) -> tuple[Ticket, ...]:
        """Return the tickets that the question is about when it may read no other customer's."""
        wanted = asks(self._standalone)
        if wanted & {"similar", "aggregate"}:
            return ()
        return self._evidence.tickets

    async def _similar_tickets(self, arguments: SimilarTickets) -> Result:
        if self._case_locked():
            raise TwohopError("the question is about one ticket; other customers' tickets do not decide it")
        self._check_rights()
        text, own = arguments.text, ""
        if arguments.number:
            ticket = await self._fetch(arguments.number)
            text, own = f"{ticket.subject}\n{ticket.body}", ticket.number
        if not text.strip():
            raise TwohopError("give a text or a ticket number")
        where = self._where(kind="ticket")
        # A ticket is several chunks; it counts once, where its best one stands.
        searched = await self.search(text, where, 6 * self._shown)
        if searched.down:
            return Result("", error=DOWN, failed=searched.failed)
        numbers = dict.fromkeys(hit.chunk.uri.partition(":")[2] for hit in searched.hits)
        numbers.pop(own, None)
        items = []
        for number in list(numbers)[: self._shown]:
            found = await self._store(partial(self._tickets.get, number, self._readers))
            if found is not None:
                items.append(self._evidence.pin(from_ticket(found, self.label(found.number))))
        self.gained += len(items)
        told = _list(items) if items else "no similar ticket was found"
        return Result(told, tuple(items), failed=searched.failed)

    def label(self, number: str) -> str:
        """Write a ticket number as the company does."""
        prefixes = self._tickets.settings.prefixes
        return f"{prefixes[0] if prefixes else '#'}{number}"

    async def _fetch(self, spelled: str) -> Ticket:
        number = self._tickets.canonical(spelled)
        if number is None:
            raise TwohopError(f"{spelled!r} is not a ticket number")
        allowed = self._allowed | {mention.number for mention in self._tickets.mentioned(self._standalone)}
        allowed |= {row.number for item in self._evidence.shown for row in item.tickets}
        allowed |= {ticket.number for ticket in self._evidence.tickets}
        if number not in allowed:
            raise TwohopError(
                f"ticket {number} is not in the question; only tickets that it names can be read"
            )
        ticket = await self._store(lambda: self._tickets.get(number, self._readers))
        if ticket is None:
            raise TwohopError(f"there is no ticket {number} that you may read")
        return ticket

    async def _get_ticket(self, arguments: GetTicket) -> Result:
        ticket = await self._fetch(arguments.number)
        item = self._evidence.pin(from_ticket(ticket, self.label(ticket.number)))
        self.rankings.append((item.source,))
        return Result(_list([item]), (item,))

    async def _find_tickets(self, arguments: FindTickets) -> Result:
        locked = {ticket.customer for ticket in self._case_locked()}
        if locked and (arguments.customer is None or arguments.customer not in locked):
            raise TwohopError(f"the question is about {', '.join(sorted(locked))}; filter by that customer")
        self._check_rights()
        filters = TicketFilter(**arguments.model_dump())
        page = await self._store(lambda: self._tickets.find(filters, self._readers))
        asked = {k: v for k, v in arguments.model_dump(mode="json", exclude_defaults=True).items() if v}
        said = described(asked)
        lists = readings(self._standalone, self._names, self._question.now.date())
        unused = min((reading.unused(asked) for reading in lists), key=len)
        lines = [await self._head(filters, page, asked, unused)]
        lines += [f"{name or '(none)'}: {count}" for name, count in list(page.counts.items())[:_COUNTS]]
        lines += [f"and {len(page.counts) - _COUNTS} more values"] if len(page.counts) > _COUNTS else []
        lines += [
            " | ".join(
                part
                for part in (
                    self.label(t.number),
                    t.customer,
                    t.subject,
                    t.status,
                    t.priority,
                    t.assignee,
                    *t.facets.values(),
                    f"opened {format_date(t.opened)}" if t.opened else "",
                )
                if part
            )
            for t in page.tickets
        ]
        item = self._evidence.pin(
            EvidenceItem(
                n=0,
                kind="table",
                id=f"table:{json.dumps(asked, sort_keys=True)}",
                source="tickets",
                title="Tickets",
                section=said,
                url="",
                text="\n".join(lines),
                readers=frozenset(self._tickets.settings.readers),
                tickets=page.tickets,
                unused=unused,
            )
        )
        self.gained += 1
        self.rankings.append((item.source,))
        hint = f"; not used as a filter: {', '.join(unused)}" if unused else ""
        return Result(_list([item]) + hint, (item,))

    async def _head(
        self, filters: TicketFilter, page: TicketPage, asked: Mapping[str, Any], unused: Sequence[str]
    ) -> str:
        """Write what was counted, what it is not narrowed by, and the number: whoever stops reading there is not misled."""
        people = page.counts if filters.count_by in ("customer", "assignee") else {}
        among = f", {len(people)} {filters.count_by}{'' if len(people) == 1 else 's'}" if people else ""
        found = f"{page.total} found{among}"
        if filters.text and not page.total:
            # A word that no ticket holds may be no word of tickets at all.
            all_ = await self._store(
                lambda: self._tickets.find(dataclasses.replace(filters, text=None), self._readers)
            )
            asked = {name: value for name, value in asked.items() if name != "text"}
            texts = [filters.text] if isinstance(filters.text, str) else filters.text
            said = " or ".join(f"“{text.strip(chr(34))}”" for text in texts)
            found = (
                f"0 found with {said} in their text; {all_.total} without that condition{self._near(texts)}"
            )
        return f"Tickets ({described(asked) or 'all'}{_not_narrowed(unused)}): {found}"

    def _near(self, texts: Iterable[str]) -> str:
        """Return the value that a word which no ticket holds may be a slip of: “opend”."""
        options = [self._names.status, self._names.priority, *self._names.facets.values()]
        known = {fold(value): value for values in options for value in values}
        near = [known[m] for text in texts for m in difflib.get_close_matches(fold(text), known, 1, 0.8)]
        return f" (a value like it is “{near[0]}”)" if near else ""

    def _deadline(self, arguments: ComputeDeadline) -> Result:
        """Compute only from values that stand in the evidence or the question: an invented 45 days is no input."""
        day = arguments.start.date() if isinstance(arguments.start, datetime) else arguments.start
        now = self._question.now.date()
        sources = [self._standalone, *(item.text for item in self._evidence.shown)]
        found = [atom for text in sources for atom in atoms(text)]
        dates = {resolve_date(atom, now) for atom in found if atom.kind == "date"}
        if day not in dates:
            raise TwohopError(
                f"{format_date(day)} is in no evidence; a deadline is computed from dates that are"
            )
        said = format_duration(arguments.amount, arguments.unit)
        durations = {atom.value for atom in found if atom.kind == "duration"}
        if not {atom.value for atom in atoms(said)} & durations:
            raise TwohopError(f"{said!r} is in no evidence; a deadline is computed from durations that are")
        end = deadline(arguments.start, arguments.amount, arguments.unit, self._calendar)
        item = self._evidence.pin(
            EvidenceItem(
                n=0,
                kind="computed",
                id=f"computed:{end.formula}",
                source="computed",
                title="Computed date",
                section="",
                url="",
                text=end.formula,
                readers=self._readers,
                derived=(format_date(day), said),
            )
        )
        return Result(_list([item]), (item,))


_COUNTS = 50
"""Values whose counts are shown, the commonest."""


def _not_narrowed(unused: Sequence[str]) -> str:
    """Say what a list is not narrowed by, and why where it is a rule."""
    said = ", ".join(f"“{word}”" for word in unused)
    ruled = any("rule" in asks(word) or TIMED.search(word) for word in unused)
    rule = ", which a rule decides case by case" if ruled else ""
    return f"; not narrowed by {said}{rule}" if said else ""


_PAST = frozenset(
    {
        *(
            "old",
            "older",
            "previous",
            "previously",
            "former",
            "formerly",
            "used",
            "superseded",
            "earlier",
            "history",
        ),
        *("before", "changed", "change", "antes", "anterior"),
    }
)


def in_force_on(text: str, today: date) -> date | None:
    """Return the day whose texts a question is about: today, the last day of a past year that it names, the end of that
    year where it names no day, or None for every version."""
    plain = words(text)
    years = {
        int(word) for word in plain if word.isdigit() and len(word) == 4 and 2000 <= int(word) < today.year
    }
    days = [day for atom in atoms(text) if atom.kind == "date" and (day := resolve_date(atom, today))]
    if set(plain) & _PAST or len(years) > 1:
        return None
    if not years or not all(day.year in years for day in days):
        return today
    return None if "compare" in asks(text) else max(days, default=date(years.pop(), 12, 31))


def _json(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise TwohopError(f"the arguments are not JSON ({error.msg}); send one JSON object") from error


def _list(items: Sequence[EvidenceItem]) -> str:
    """Name what was found by its evidence numbers; the texts stand in the evidence."""
    return "found " + "; ".join(
        f"[{item.n}] {item.title}{' > ' + item.section if item.section else ''}" for item in items
    )
