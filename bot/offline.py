"""The ChatModel that needs no key and no network: it plans by rule and answers by quoting.

It knows nothing about one example: what it searches next comes from the facets of fetched rows, from the titles that
passages name and from the names the tickets know; what it says are sentences of the evidence, chosen by similarity to
the question and by the words they share, with their heading path.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from bot.filters import only_counts, read, whole_codes
from bot.gate import RECORD, STATE, asks
from bot.types import Budget, EvidenceItem, Gazetteer, Message, Reply, Tool, ToolCall
from ingest.atoms import codes, mentions, sentences, stems, words, written_out
from ingest.embed import Embedder

NOTE = "Answered without a language model: sentences quoted from the sources, dates computed by rule."
MOST_CALLS = 6
"""Calls that one question is worth: each is one search."""
NEAR = 0.42
"""Cosine between question and sentence from which a sentence may stand in a comparison."""
ANSWERS = ((0.35, 0.8), (0.42, 0.5), (0.6, 0.25))
"""Cosine between question and sentence, and share (by weight) of the question's words that its chunk holds, from
which a sentence answers: the less of the one, the more of the other."""
_ASKING = frozenset(
    stems(
        "how much many get gets include includes included have has does can could would may might which what when where who tell know "
        "need want give use there any please about cost costs one quick morning good hello hi your our we you they customer customers "
        "long often max maximum do make made exactly currently now today"
    )
)
"""Words that ask for something without saying of what."""


@dataclass(frozen=True, slots=True)
class Line:
    """One quotable line of the evidence."""

    item: EvidenceItem
    text: str
    score: float
    nearness: float


class OfflineModel:
    """Plans by rule, answers by quoting; deterministic."""

    name = "offline"
    note = NOTE

    def __init__(self, embedder: Embedder, names: Callable[[], Gazetteer]) -> None:
        self._embedder = embedder
        self._names = names

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Plan while there are tools and something is missing; else quote. A schema is answered with nothing."""
        del max_tokens, budget
        asked = next(message for message in reversed(messages) if message.role == "user")
        if schema is not None or asked.now is None:
            return Reply("")
        names = asked.names or self._names()
        if tools:
            done = [(call.name, call.arguments) for message in messages for call in message.calls]
            calls = [
                call for call in plan(asked.text, asked.evidence, names, asked.now.date()) if call not in done
            ]
            if calls and len(done) < MOST_CALLS:
                return Reply(
                    "",
                    tuple(
                        ToolCall(f"call-{len(done) + i}", name, arguments)
                        for i, (name, arguments) in enumerate(calls[:3], start=1)
                    ),
                    finish="tool_calls",
                )
        # A link from a text is not one of our sources' addresses; it may lead anywhere.
        return Reply(
            re.sub(
                r"https?://[^\s”\])]+", "(link left out)", self._compose(asked.text, asked.evidence, names)
            )
        )

    def _compose(self, text: str, evidence: Sequence[EvidenceItem], names: Gazetteer) -> str:
        """Answer from the evidence by quoting, or say nothing."""
        wanted = asks(text)
        tables = [item for item in evidence if item.kind == "table"]
        rows = [item for item in evidence if item.ticket is not None]
        docs = [item for item in evidence if item.chunk is not None]
        parts: list[str] = []
        if tables and not (rows and "rule" in wanted):
            parts += [line for item in tables[-2:] for line in _table(item)]
        spoken = words(text)
        asked = [item for item in rows if item.ticket and set(words(item.ticket.number)) <= set(spoken)]
        if len(asked) > 1:
            parts += [_resolved(item) for item in asked]
        elif "similar" in wanted:
            parts += [_resolved(item) for item in rows if item not in asked]
        elif len(rows) > 1 and not tables:
            parts += [_resolved(item) for item in rows]
        elif rows and not tables:
            quotes = [] if "rule" in wanted else self._of_its_kind(text, rows[0], docs, names)
            parts += _fields(rows[0], text, wanted, short=bool(quotes)) + quotes
        if parts and (only_counts(text) or not ("rule" in wanted or "compare" in wanted)):
            return "\n".join(parts)
        lines = self._lines(text, docs, names)
        if not lines or not self._enough(text, lines, docs):
            return "\n".join(parts)
        return "\n".join([*parts, *(_quote(line) for line in lines)])

    def _of_its_kind(
        self, text: str, row: EvidenceItem, docs: Sequence[EvidenceItem], names: Gazetteer
    ) -> list[str]:
        """Quote what the documents say for the ticket's kind of case: nothing that is about another plan."""
        if row.ticket is None:
            return []
        number = rf"\S*{re.escape(row.ticket.number)}\S*"
        bare = re.sub(number, " ", text)
        facts = {name: value for name, value in row.facets.items() if value}
        lines = [
            line
            for line in self._lines(f"{bare} {' '.join(facts.values())}", docs, names)
            if not any(
                (said := mentions(f"{line.item.title} {line.text}", names.facets.get(name, ())))
                and value not in said
                for name, value in facts.items()
            )
        ]
        if not set(stems(bare)) - RECORD - _ASKING or not lines or not self._enough(bare, lines, docs):
            return []
        return [_quote(line) for line in lines]

    def _lines(self, text: str, docs: Sequence[EvidenceItem], names: Gazetteer) -> list[Line]:
        """Return the best lines: one for each thing compared, else up to four that are not repetitions."""
        options = [(item, line) for item in docs for line in quotable(item)]
        asked = set(whole_codes(text))
        if asked:
            options = [
                (i, line) for i, line in options if asked & set(codes(f"{i.title} {i.section} {line}"))
            ]
            if not options:
                return []
        if not options:
            return []
        wanted = list(dict.fromkeys(stems(text)))
        pool = [frozenset(stems(f"{item.title} {item.section} {line}")) for item, line in options]
        frequency = Counter(stem for held in pool for stem in held)
        weight = {stem: math.log(1 + len(pool) / (1 + frequency[stem])) for stem in wanted}
        total = sum(weight.values()) or 1.0
        vectors = self._embedder.embed(
            [f"{item.title} > {item.section}: {line}" for item, line in options], kind="passage"
        )
        near = vectors @ self._embedder.embed([text], kind="query")[0]
        scored = [
            Line(
                item,
                line,
                0.6 * float(near[i])
                - (0.15 if item.chunk and item.chunk.authority == "chat" else 0)
                + 0.4 * sum(weight[s] for s in wanted if s in pool[i]) / total,
                float(near[i]),
            )
            for i, (item, line) in enumerate(options)
        ]
        scored.sort(key=lambda line: (-line.score, line.item.n))
        compared = [value for values in names.facets.values() for value in mentions(text, values)]
        if "compare" in asks(text) and len(compared) < 2:
            compared = next(
                (
                    list(values)
                    for name, values in names.facets.items()
                    if name in words(text) or f"{name}s" in words(text)
                ),
                [],
            )
        chosen: list[Line] = []
        if len(compared) > 1:
            for value in compared:
                best = [
                    ln for ln in scored if mentions(f"{ln.item.title} {ln.item.section} {ln.text}", [value])
                ]
                chosen += [ln for ln in best[:2] if ln not in chosen]
            return chosen[:8]
        for line in scored:
            if line.score < 0.65 * scored[0].score or len(chosen) == 4:
                break
            held = set(stems(line.text))
            if all(len(held & set(stems(c.text))) < 0.7 * (len(held) or 1) for c in chosen):
                chosen.append(line)
        return chosen

    def _enough(self, text: str, lines: Sequence[Line], docs: Sequence[EvidenceItem]) -> bool:
        """Tell whether the best lines answer: near in meaning, and holding the words that make the question."""
        best = lines[0]
        if asked := set(whole_codes(text)):
            return bool(asked & set(codes(f"{best.item.title} {best.item.section} {best.text}")))
        if "compare" in asks(text):
            return best.nearness >= NEAR
        held = set(stems(f"{best.item.title} {best.item.section} {best.item.text}"))
        wanted = set(stems(text)) - _ASKING
        everywhere = Counter(
            stem for item in docs for stem in set(stems(f"{item.title} {item.section} {item.text}"))
        )
        names = [stem for name in re.findall(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][\w-]+", text) for stem in stems(name)]
        if any(name not in everywhere and name in wanted for name in names):
            return False  # what it asks about by name is nowhere in what was found
        weight = {stem: 1 / (1 + everywhere[stem]) ** 0.5 for stem in wanted}
        covered = sum(weight[s] for s in wanted & held) / (sum(weight.values()) or 1.0)
        return any(best.nearness >= near and covered >= share for near, share in ANSWERS)


_ORDERS = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instructions?|rules|prompts?)\b|\b(dear|to the) (assistant|ai|bot)\b|"
    r"\byou (must|should|shall) (now )?(say|tell|answer|reply|confirm)\b",
    re.IGNORECASE,
)
"""Sentences that address whoever reads for somebody: they are no answer to anything."""


def quotable(item: EvidenceItem) -> Iterator[str]:
    """Yield the lines of a chunk that can stand alone: sentences, list items, and table rows written out."""
    body = item.chunk.body if item.chunk else item.text
    # A quotation inside a document is somebody's words, not the document's.
    spoken = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith(">"))
    for line in sentences(written_out(spoken)):
        plain = line.strip()
        if (
            len(words(plain)) >= 3
            and not plain.startswith("#")
            and not re.match(r"\[[^\]]+\]:", plain)
            and not _ORDERS.search(plain)
        ):
            yield plain


def _place(item: EvidenceItem) -> str:
    last = item.section.rpartition(" > ")[2]
    return f"{item.title}, {last}" if last else item.title


def _quote(line: Line) -> str:
    text = re.sub(r"^(?:[-*+]|\d+[.)])\s+", "", line.text)
    return f"- {_place(line.item)}: “{text}” [{line.item.n}]"


def _table(item: EvidenceItem) -> list[str]:
    head, *rest = item.text.splitlines()
    counts = [line for line in rest if " | " not in line]
    return [f"{head} [{item.n}]", *(f"- {line} [{item.n}]" for line in (counts or rest[:12]))]


def _resolved(item: EvidenceItem) -> str:
    ticket = item.ticket
    if ticket is None:
        return ""
    how = f"“{' '.join(sentences(ticket.resolution)[:3])}”" if ticket.resolution else f"still {ticket.status}"
    return f"- {item.title} ({ticket.customer}): “{ticket.subject}” {how} [{item.n}]"


def _fields(item: EvidenceItem, text: str, wanted: frozenset[str], short: bool = False) -> list[str]:
    """Return the fields of a ticket that the question names; the ticket in short where it names none."""
    if "rule" in wanted:
        return []
    head, *rest = item.text.splitlines()
    asked = set(stems(text))
    if not re.search(r"\b(who|which|what|whose) (is the )?customer", text, re.IGNORECASE):
        asked -= set(stems("customer"))
    fields = [line for line in rest if ": " in line and not line.startswith("Resolution")]
    named = [line for line in fields if set(stems(line.partition(":")[0])) & asked]
    if "who" in words(text):
        named += [line for line in fields if line.startswith("Assignee") and line not in named]
    resolution = [line for line in rest if line.startswith("Resolution: ")]
    if STATE.search(" ".join(words(text))) or {"resolv", "resolut", "fix", "solv", "happen", "end"} & asked:
        named += [line for line in fields if line.startswith("Status") and line not in named] + resolution
    if short and not named:
        named = [line for line in fields if line.partition(": ")[2] in item.facets.values()]
    if named:
        return [f"{head}. {'; '.join(named)} [{item.n}]"]
    body = item.ticket.body if item.ticket else ""
    # What a customer writes is a quotation, and the first sentence that says something tells what it is about.
    # A text that gives orders to whoever reads it is not quoted at all.
    told = () if _ORDERS.search(body) else sentences(body)
    said = [f"The ticket says: “{line}”" for line in told if len(words(line)) > 3][:1]
    return [f"{line} [{item.n}]" for line in (f"{head}. {'; '.join(fields[:6])}.", *said, *resolution)]


def plan(text: str, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date) -> list[tuple[str, str]]:
    """Return the calls that could bring what is missing, most useful first, as (tool, arguments)."""
    wanted = asks(text)
    calls: list[tuple[str, dict[str, Any]]] = []
    filters = dict(read(text, names, today).filters)
    rows = [item for item in evidence if item.ticket is not None]
    if ("aggregate" in wanted or filters.get("customer")) and not rows:
        calls.append(("find_tickets", filters))
    named = [item.ticket.number for item in rows if item.ticket]
    if "similar" in wanted and len(named) < 2:
        calls.append(
            ("similar_tickets", {"number": named[0]} if named and len(named) == 1 else {"text": text})
        )
    topic = " ".join(stem for stem in words(text) if stems(stem))
    if "compare" in wanted:
        compared = [value for values in names.facets.values() for value in mentions(text, values)]
        for name, values in names.facets.items():
            if not compared and (name in words(text) or f"{name}s" in words(text)):
                compared = list(values)
        without = topic
        for value in compared:
            without = re.sub(rf"\b{re.escape(' '.join(words(value)))}\b", " ", without)
        calls += [
            ("search_docs", {"query": " ".join(f"{value} {without}".split())}) for value in compared[:4]
        ]
    shown = " ".join(item.text for item in evidence if item.chunk is not None)
    titles = {item.title for item in evidence}
    calls += [
        ("search_docs", {"query": f"{title} {topic}"[:400]})
        for title in mentions(shown, [t for t in names.titles if t not in titles and len(words(t)) > 1])[:2]
    ]
    if not calls and not rows:
        calls.append(("search_docs", {"query": topic or text}))
    return [(name, json.dumps(arguments, sort_keys=True, default=str)) for name, arguments in calls]
