"""The benchmark of answering: what each part costs, as a share of one query embedding measured in the same run."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from datetime import time as day_time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.table import Table

from bot import check, gate, pipeline, verdict
from bot.app import Desk, build
from bot.bench.measure import (
    Clock,
    Tell,
    TimedEmbedder,
    Told,
    as_table,
    in_words,
    machine,
    p95,
    resident_mb,
    short,
)
from bot.config import Settings
from bot.evaluate import read
from bot.evidence import Evidence
from bot.sample import demo_settings, sample
from bot.store import Inbound, Inbox
from bot.store.state import opened
from bot.tools import SCHEMAS, Toolbox, in_force_on
from bot.types import Answer, Asker, Budget, ChatModel, Message, Mode, Question, Reply, Tool, ToolCall
from ingest.embed import Vectors, embedder_for
from ingest.types import Chunk, Where

UNIT = "query embedding"
"""The row that every other one is a share of."""

PARTS = (
    UNIT,
    "gate",
    "index, bare rank",
    "retrieval",
    *(f"tool {name}" for name in SCHEMAS),
    "verdict",
    "checks",
    "whole turn, gated",
    "whole turn, hybrid",
    "ack: inbox insert",
)
"""What is measured, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement in seconds, and the part of it that was spent embedding."""

    seconds: float
    embedding: float = 0.0


class Watch:
    """Takes the time of named parts."""

    def __init__(self, clock: Clock, embedder: TimedEmbedder) -> None:
        self._clock = clock
        self._embedder = embedder
        self.samples: dict[str, list[Sample]] = {name: [] for name in PARTS}

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Measure the block as one sample of `name`."""
        embedding, began = self._embedder.spent, self._clock()
        yield
        seconds = self._clock() - began
        self.samples[name].append(Sample(seconds, self._embedder.spent - embedding))


@dataclass(frozen=True, slots=True)
class Row:
    """One part's cost; a share is a multiple of the median query embedding, `own` is without the embedding inside."""

    name: str
    samples: int
    median_ms: float
    p95_ms: float
    median_share: float
    p95_share: float
    own_median_ms: float
    own_p95_ms: float
    own_median_share: float
    own_p95_share: float

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        shares = (self.median_share, self.p95_share, self.own_median_share, self.own_p95_share)
        return self.name, str(self.samples), *map(short, (self.median_ms, self.p95_ms, *shares))


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    rows: tuple[Row, ...]
    rounds: int
    questions: int
    machine: Mapping[str, Any]
    memory_mb: Mapping[str, float]
    """Resident memory of the process at named moments, in the order of time."""

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `bench --json`."""
        return asdict(self)

    def table(self) -> Table:
        """Return the rows for reading."""
        title = f"{self.questions} questions, {self.rounds} rounds after one that is not counted"
        columns = ("part", "n", "ms", "p95", "×", "p95", "own ×", "p95")
        return as_table(title, columns, (("", row.cells()) for row in self.rows))

    def notes(self) -> tuple[str, ...]:
        """Return what the table does not say, in lines."""
        return (
            f"medians and 95th percentiles; × is a multiple of this run's median {UNIT}, own without the embedding inside",
            "memory (MB): " + ", ".join(f"{name} {mb:.0f}" for name, mb in self.memory_mb.items()),
            in_words(self.machine),
        )


def rows(samples: Mapping[str, Sequence[Sample]]) -> tuple[Row, ...]:
    """Return a row for each part that has samples, in their order; the unit must have some. p95 is the nearest rank."""
    unit = statistics.median(sample.seconds for sample in samples[UNIT])
    found = []
    for name, taken in samples.items():
        if not taken:
            continue
        # The unit is all embedding: without it nothing would be left of it.
        own = [s.seconds - (0.0 if name == UNIT else s.embedding) for s in taken]
        values = [
            of(seconds) for seconds in ([s.seconds for s in taken], own) for of in (statistics.median, p95)
        ]
        ms = [value * 1000 for value in values]
        shares = [value / unit for value in values]
        found.append(Row(name, len(taken), *ms[:2], *shares[:2], *ms[2:], *shares[2:]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with what its own turn brought, so that each part can be given what it gets in a turn."""

    question: Question
    answer: Answer
    where: Where
    vector: Vectors
    message: Message | None
    """The last request's question with its evidence; None where no model was asked."""
    draft: str
    rules: tuple[Chunk, ...]
    """What the verdict chooses from."""


class _Listening:
    """A ChatModel that keeps the last request and reply of another one."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name = model.name
        self.note = model.note
        self.message: Message | None = None
        self.draft = ""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Ask the other model."""
        reply = await self._model.complete(
            messages, tools=tools, schema=schema, max_tokens=max_tokens, budget=budget
        )
        self.message = next(m for m in reversed(messages) if m.role == "user")
        self.draft = reply.text
        return reply


class _Bench:
    """The parts of one desk, each measured as a turn calls it; every measurement gets a fresh state."""

    def __init__(self, desk: Desk, inbox: Inbox, watch: Watch) -> None:
        self._desk = desk
        self._parts = desk.parts
        self._inbox = inbox
        self.watch = watch
        self._arrived = 0

    async def ask(self, question: Question) -> _Asked:
        """Answer a question once and keep what its parts were given."""
        parts = self._parts
        model = _Listening(parts.fallback)
        answer = await pipeline.answer(question, replace(parts, model=model, fallback=model))
        day = in_force_on(question.text, question.now.date())
        where = Where(readers=question.asker.readers, in_force_on=day)
        ruled = Where(readers=question.asker.readers, rules_only=True)
        found = parts.retriever.search(question.text, ruled, parts.retrieval.rules, self._deadline())
        vector = self._desk.embedder.embed([question.text], kind="query")[0]
        rules = tuple(hit.chunk for hit in found.hits)
        return _Asked(question, answer, where, vector, model.message, model.draft, rules)

    def _deadline(self) -> float:
        return Budget.start(self._parts.limits).deadline

    async def _compute(self, name: str, work: Callable[[], object]) -> None:
        """Measure work on the thread where a turn does it, without the way there and back."""

        def timed() -> None:
            with self.watch.time(name):
                work()

        await self._parts.compute(timed)

    async def embedding(self, asked: _Asked) -> None:
        text = asked.question.text
        await self._compute(UNIT, lambda: self._desk.embedder.embed([text], kind="query"))

    async def gate(self, asked: _Asked) -> None:
        evidence = Evidence(self._parts.retrieval.pool)
        for item in asked.message.evidence if asked.message else ():
            evidence.pin(item)
        names = asked.message.names if asked.message else None
        reading = gate.Reading(asked.answer.standalone, names.facets if names else {}, evidence)
        with self.watch.time("gate"):
            gate.small_talk(asked.question.text)
            gate.route(reading)

    async def index(self, asked: _Asked) -> None:
        text, k, deadline = asked.question.text, self._parts.retrieval.candidates, self._deadline()
        await self._compute(
            "index, bare rank",
            lambda: self._desk.index.rank(text, asked.vector, k, asked.where, deadline),
        )

    async def retrieval(self, asked: _Asked) -> None:
        text, k, deadline = asked.question.text, self._parts.retrieval.shown, self._deadline()
        await self._compute("retrieval", lambda: self._parts.retriever.search(text, asked.where, k, deadline))

    async def tools(self, asked: _Asked) -> None:
        """Make the calls of the turn again, in their order."""
        tools = self._toolbox(asked)
        for step in asked.answer.steps:
            if not step.error:
                tools.allow(str(step.arguments.get("number", "")))
                call = ToolCall("", step.tool, json.dumps(dict(step.arguments)))
                with self.watch.time(f"tool {step.tool}"):
                    await tools.call(call, by=step.by)

    def _toolbox(self, asked: _Asked) -> Toolbox:
        parts = self._parts
        return Toolbox(
            question=asked.question,
            standalone=asked.answer.standalone,
            evidence=Evidence(parts.retrieval.pool),
            budget=Budget.start(parts.limits),
            retriever=parts.retriever,
            tickets=parts.tickets,
            names=parts.names(),
            calendar=parts.calendar,
            shown=parts.retrieval.shown,
            compute=parts.compute,
            store=parts.store,
            observe=lambda _: None,
        )

    async def verdict(self, asked: _Asked) -> None:
        """Decide again, where the turn had a verdict, over its rows and the rules of the question."""
        message, parts = asked.message, self._parts
        if asked.answer.verdict is None or message is None or message.names is None:
            return
        vocabulary, synonyms = message.names.vocabulary, parts.words.synonyms
        settings, text, now = parts.tickets.settings, asked.answer.standalone, asked.question.now
        rows = [(item.ticket, item.title) for item in message.evidence if item.ticket]
        chunks = {chunk.id: chunk for chunk in asked.rules}
        chunks |= {item.chunk.id: item.chunk for item in message.evidence if item.chunk}
        with self.watch.time("verdict"):
            told = verdict.cases_in(text, vocabulary, settings.events, now)
            cases = [verdict.case_of(ticket, title, f"ticket:{ticket.number}") for ticket, title in rows]
            for case in cases or told:
                put = verdict.put(text, case, vocabulary, now)
                if verdict.wants_verdict(
                    text, put, actions=settings.actions, vocabulary=vocabulary, synonyms=synonyms
                ):
                    verdict.decide(
                        text,
                        put,
                        chunks.values(),
                        vocabulary=vocabulary,
                        synonyms=synonyms,
                        actions=settings.actions,
                        anchors=settings.events,
                        calendar=parts.calendar,
                        now=now,
                    )

    async def checks(self, asked: _Asked) -> None:
        if asked.message is not None:
            shown = asked.message.evidence
            with self.watch.time("checks"):
                checked = check.check(asked.draft, shown, asked.answer.verdict)
                check.finish(asked.answer.verdict, checked.text, {item.id: item for item in shown})

    async def gated(self, asked: _Asked) -> None:
        await self._turn(asked, "gated")

    async def hybrid(self, asked: _Asked) -> None:
        await self._turn(asked, "hybrid")

    async def _turn(self, asked: _Asked, mode: Mode) -> None:
        with self.watch.time(f"whole turn, {mode}"):
            await pipeline.answer(asked.question, self._parts, mode)

    async def arrival(self, asked: _Asked) -> None:
        """Write the question as an event that arrives: what must be done before it is acknowledged."""
        self._arrived += 1
        event, ts = f"Ev{self._arrived}", f"{self._arrived}.000100"
        inbound = Inbound(event, "T1", "C1", "channel", "U1", asked.question.text, ts, ts)
        with self.watch.time("ack: inbox insert"):
            await self._parts.store(lambda: self._inbox.put(inbound))

    @property
    def probes(self) -> tuple[Callable[[_Asked], Awaitable[None]], ...]:
        """What measures the parts, one after the other."""
        return (
            self.embedding,
            self.gate,
            self.index,
            self.retrieval,
            self.tools,
            self.verdict,
            self.checks,
            self.gated,
            self.hybrid,
            self.arrival,
        )


async def measure(
    desk: Desk,
    embedder: TimedEmbedder,
    questions: Sequence[Question],
    *,
    rounds: int,
    clock: Clock,
    tell: Tell = lambda *_: None,
) -> Mapping[str, Sequence[Sample]]:
    """Measure each part for each question `rounds` times, after one round that is not counted.

    `desk` embeds with `embedder` and answers without a language model. The parts of one question are measured one
    after the other and begin with another one each time, so that what slows the machine down slows all of them alike.
    The arrivals go to a database of their own beside the desk's data, on the same disk.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", dir=desk.settings.data) as folder:
        engine = opened(f"sqlite:///{Path(folder) / 'inbox.db'}")
        try:
            bench = _Bench(desk, Inbox(engine, "bench", 60.0), Watch(clock, embedder))
            asked: list[_Asked] = []
            for question in questions:
                tell("answering each question once", len(asked), len(questions))
                asked.append(await bench.ask(question))
            for number in range(rounds + 1):
                if number == 1:
                    bench.watch = Watch(clock, embedder)
                stage = f"round {number} of {rounds}" if number else "a round that is not counted"
                for place, one in enumerate(asked):
                    tell(stage, place, len(asked))
                    start = (number + place) % len(bench.probes)
                    for probe in (*bench.probes[start:], *bench.probes[:start]):
                        # Nothing that another part has embedded is there already.
                        desk.remembered.forget()
                        await probe(one)
        finally:
            engine.dispose()
    return bench.watch.samples


def questions_of_the_sample(settings: Settings, most: int) -> list[Question]:
    """Return at most so many labelled questions, evenly from all of them, each at noon of its own day."""
    # A follow-up needs its thread answered first, which is no part of what is measured.
    labelled = [q for path in sorted(sample().glob("questions*.jsonl")) for q in read(path) if not q.history]
    step = max(1, len(labelled) // most)
    zone = ZoneInfo(settings.calendar.zone)
    return [
        Question(
            q.text, Asker("bench", frozenset(q.asker_readers)), datetime.combine(q.now, day_time(12), zone)
        )
        for q in labelled[::step][:most]
    ]


def run(lent: Settings, *, rounds: int, most: int, tell: Tell) -> Report:
    """Index the sample company in the folder that was lent, and measure; without a language model."""
    settings = demo_settings(lent).model_copy(update={"model": ""})
    questions = questions_of_the_sample(settings, most)
    memory = {"at the start": resident_mb()}
    tell("loading the embedding model", 0, 0)
    embedder = TimedEmbedder(embedder_for(settings.embedding), time.perf_counter)
    embedder.embed(["loads the model"], kind="query")
    memory["with the model"] = resident_mb()
    with closing(build(settings, embedder)) as desk:
        watch = Told(tell)
        for path in settings.tickets.csv:
            desk.import_tickets(path)
        desk.sync_documents(watch=watch)
        desk.sync_tickets(watch)
        memory["with the desk"] = resident_mb()
        samples = asyncio.run(
            measure(desk, embedder, questions, rounds=rounds, clock=time.perf_counter, tell=tell)
        )
    memory["after the run"] = resident_mb()
    return Report(rows(samples), rounds, len(questions), machine(embedder.name), memory)
