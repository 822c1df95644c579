"""The pipeline: answer(question) -> Answer, the whole flow of a question."""

from __future__ import annotations

import dataclasses
import json
import re
import time as clock
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from functools import partial

from bot import agent, check, filters, gate, rewrite, small_talk, unanswered, verdict
from bot.evidence import Evidence, from_chunk, stale
from bot.filters import meant
from bot.parts import Parts
from bot.spelling import respelt
from bot.tools import NO_RIGHT, Toolbox, in_force_on
from bot.types import (
    Answer,
    Budget,
    EvidenceItem,
    Gazetteer,
    Message,
    Mode,
    Question,
    Reply,
    Route,
    Shape,
    Step,
    ToolCall,
    Verdict,
)
from bot.unanswered import sentence
from ingest import scope
from ingest.dates import format_date
from ingest.errors import ModelError, TicketsUnavailable, TwohopError
from ingest.tickets import TicketFilter
from ingest.types import Arm, Chunk, Ticket, Where
from ingest.words import mentions, stems, words

CHECKS = "the language model's wording could not be found in the sources, so this quotes them instead"
SILENT = "the language model gave no answer"
_TOLD = 500
"""Characters of a ticket's text that are searched for."""
_EVERY = 500
"""Places asked for when an arm is missing and the others must make up for it, so that no rule stays out of sight."""


async def answer(
    question: Question, parts: Parts, mode: Mode = "gated", observe: Callable[[Step], None] = lambda _: None
) -> Answer:
    """Answer one question; never raises for what a model, a document or a ticket contains."""
    question = dataclasses.replace(question, text=rewrite.condensed(question.text))
    if meta := gate.small_talk(question.text):
        return await small_talk.reply(meta, question, parts)
    names = await parts.store(parts.names)
    known = [*names.status, *names.priority, *(value for values in names.facets.values() for value in values)]
    if meta := await parts.compute(lambda: parts.talk(question.text, known)):
        return await small_talk.reply(meta, question, parts)
    turn = _Turn(question, parts, mode, observe, names, await parts.store(parts.unread))
    if mode in ("naive", "hybrid"):
        return await turn.baseline(mode)
    return await turn.run()


class _Turn:
    """One question on its way through the steps of the flow."""

    def __init__(
        self,
        question: Question,
        parts: Parts,
        mode: Mode,
        observe: Callable[[Step], None],
        names: Gazetteer,
        unread: str,
    ) -> None:
        self.question = question
        self.parts = parts
        self.mode = mode
        self.observe = observe
        self.budget = Budget.start(parts.limits)
        self.evidence = Evidence(parts.retrieval.pool)
        self.text = question.text
        self.gaps: list[str] = []
        self.replies: list[Reply] = []
        self.rejected: list[str] = []
        self.failure = ""
        """Why the language model has no part in the answer, in words for the asker."""
        self.rules: dict[str, Chunk] = {}
        self.searched: set[str] = set()
        self.hidden = False
        """True where a rule that decides may have been missed, because a search was not whole."""
        self.names = names
        self.settled = False
        """Code has decided all that is asked, yes or no."""
        self.unread = unread
        self.tools: Toolbox
        self.stages: dict[str, float] = {}
        self._began = clock.perf_counter()

    def _ended(self, stage: str) -> None:
        """Note that a stage ends here: it took what no stage before it did."""
        now = clock.perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + (now - self._began) * 1000
        self._began = now

    async def run(self) -> Answer:
        """Rewrite, search, search again where a fetched row brings the word, route, decide, write, check."""
        await self._read()
        unclear = await self._first_hop()
        self._ended("first search")
        if unclear:
            return self._answer(
                "clarify", unclear, Route("direct", ("the question does not say which ticket",)), None
            )
        cases = await self._searched_cases()
        self._ended("second search")
        decided = await self._decide(cases)
        self._ended("verdict")
        if self._out_of_reach(decided):
            return self._unavailable(Route("direct", ("the rule is out of reach",)))
        if decided is None and not self.hidden:
            await self._compute_facts(cases)
        if decided and decided.beside:
            await self._call("search_docs", {"query": self._aside(decided)}, "the rule does not speak of it")
        route = gate.route(
            gate.Reading(
                self.text,
                self.names.facets,
                self.evidence,
                bool(decided and decided.overruled),
                self._named(),
            )
        )
        if self.mode == "agent" and route.path != "agent":
            route = Route("agent", ("mode agent", *route.reasons))
        if self.mode == "direct":
            route = Route("direct", ("mode direct", *route.reasons))
        self._ended("gate")
        if self.gaps and self._named() and not self.evidence.tickets:
            # The question is about a ticket that is not there: no general rule answers it.
            return self._answer("not_found", self._nothing(), route, None)
        self.settled = bool(decided and decided.decision in ("yes", "no") and not decided.beside)
        draft, stop, route = await self._write(route)
        self._ended("write")
        if self.tools.gained:
            cases = await self._searched_cases()
            self._ended("second search")
            decided = await self._decide(cases)
            self._ended("verdict")
            self.settled = self.settled and decided is not None
            if self._out_of_reach(decided):
                return self._unavailable(route)
        return await self._checked(draft, stop, route, decided)

    async def baseline(self, mode: Mode) -> Answer:
        """Answer by one search alone, for comparison: no second search, no verdict, no escalation."""
        await self._read()
        arms: tuple[Arm, ...] = ("dense",) if mode == "naive" else ("lexical", "dense", "codes")
        k = 3 if mode == "naive" else 5
        found = await self.parts.compute(
            lambda: self.parts.retriever.baseline(self.text, self._where(), k, arms, self.budget.deadline)
        )
        self.tools.keep(found)
        self._ended("first search")
        for hit in found.hits:
            self.evidence.pin(from_chunk(hit.chunk, query=self.text))
        route = Route("direct", (f"baseline mode {mode}: one search, no second hop, no verdict",))
        reply = Reply("")
        try:
            reply = await agent.final(self._message(), self.parts.model, self.budget)
            self.replies.append(reply)
        except ModelError as error:
            self._failed(error)
        self._ended("write")
        result = check.check(reply.text, self.evidence.shown, question=self.text)
        if found.failed and not result.text:
            return self._unavailable(route)
        shape: Shape = "answered" if result.text else "not_found"
        return self._answer(shape, result.text or self._nothing(), route, None, stop=f"baseline {mode}")

    # --- the steps ---------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        if not self._may_read_tickets():
            # Whoever may not read tickets learns nothing from the names in them.
            self.names = dataclasses.replace(self.names, customers=(), assignees=(), status=())
        self.question = dataclasses.replace(self.question, text=respelt(self.question.text, self.names))
        self.text = self.question.text
        self.tools = Toolbox(
            question=self.question,
            standalone=self.text,
            evidence=self.evidence,
            budget=self.budget,
            retriever=self.parts.retriever,
            tickets=self.parts.tickets,
            names=self.names,
            calendar=self.parts.calendar,
            shown=self.parts.retrieval.shown,
            compute=self.parts.compute,
            store=self.parts.store,
            observe=self.observe,
        )
        self.text, said = await rewrite.standalone(
            self.question,
            self.parts.model,
            self.budget,
            self.names,
            self.tools.label(""),
            self.parts.tickets.mentioned,
        )
        self.replies += said
        self.tools.about(self.text)
        self._ended("read")

    def _may_read_tickets(self) -> bool:
        return bool(self.question.asker.readers & set(self.parts.tickets.settings.readers))

    def _named(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.number for m in self.parts.tickets.mentioned(self.text)))

    def _where(self) -> Where:
        day = in_force_on(self.text, self.question.now.date())
        return Where(readers=self.question.asker.readers, in_force_on=day)

    async def _tickets_by_id(self) -> list[Ticket]:
        found = []
        readers = self.question.asker.readers
        for mention in {m.number: m for m in self.parts.tickets.mentioned(self.text)}.values():
            try:
                ticket = await self.parts.store(partial(self.parts.tickets.get, mention.number, readers))
            except TwohopError as error:
                self.gaps.append(str(error))
                continue
            if ticket is not None:
                found.append(ticket)
            elif mention.explicit or (not self._may_read_tickets() and meant.points_at_a_case(self.text)):
                self.gaps.append(f"there is no ticket {self.tools.label(mention.number)} that you may read")
        return found

    async def _first_hop(self) -> str:
        """Fetch ids by key, a named customer's tickets, and search once; return what to ask back, if anything."""
        for ticket in await self._tickets_by_id():
            await self._call("get_ticket", {"number": ticket.number}, "the question names it")
        wanted = gate.asks(self.text)
        customers = meant.customers(self.text, self.names)
        who = "" if self._named() or customers else meant.dangling(self.text, self.names)
        if who and "aggregate" in wanted:
            return f"Which customer do you mean by “{who}”?"
        if not self._named() and customers and not wanted & {"aggregate", "similar"}:
            for customer in customers[:3]:
                if unclear := await self._by_customer(customer, wanted):
                    return unclear
        elif not self._named() and "rule" in wanted and meant.points_at_a_case(self.text):
            return f"Which ticket do you mean? Give its number, for example {self.tools.label('4812')}."
        await self._call("search_docs", {"query": self.text}, "first search")
        return ""

    async def _by_customer(self, customer: str, wanted: frozenset[gate.Ask]) -> str:
        """Find the ticket that a question means by its customer; ask back where several fit."""
        if "rule" not in wanted:
            return ""
        readers = self.question.asker.readers
        try:
            page = await self.parts.store(
                lambda: self.parts.tickets.find(TicketFilter(customer=customer, limit=50), readers)
            )
        except TicketsUnavailable as error:
            self.gaps.append(str(error))
            return ""
        fitting = self._fitting(page.tickets)
        if not fitting:
            return ""
        if len(fitting) > 1:
            listed = "\n".join(
                f"- {self.tools.label(t.number)}: {t.subject}"
                + (f" (opened {format_date(t.opened)})" if t.opened else "")
                for t in fitting[:8]
            )
            return f"{customer} has {len(fitting)} tickets that could be meant. Which one?\n{listed}"
        self.tools.allow(fitting[0].number)
        await self._call(
            "get_ticket", {"number": fitting[0].number}, f"the only ticket of {customer} about it"
        )
        return ""

    def _fitting(self, tickets: Sequence[Ticket]) -> Sequence[Ticket]:
        """Return the tickets that a question about their customer means: with the act it asks of, else about its topic, else with dates."""
        topic, synonyms = self._topic(), self.parts.words.synonyms
        about = [
            t
            for t in tickets
            if topic
            & verdict.topic_of(" ".join([t.subject, t.body, *t.actions]), self.names.vocabulary, synonyms)
        ]
        actions = [name for name, _ in verdict.heads(topic, self.parts.tickets.settings.actions)]
        acted = [t for t in tickets if any(name in t.actions for name in actions)]
        return acted or about or [t for t in tickets if t.events or t.actions] or tickets

    def _topic(self) -> frozenset[str]:
        return verdict.topic_of(self._asked(), self.names.vocabulary, self.parts.words.synonyms)

    def _asked(self) -> str:
        """Return the question without customers' names and ticket numbers: "Team Rocket" is no plan, "RMA 17" no topic."""
        text = self.text
        for mention in reversed(self.parts.tickets.mentioned(text)):
            text = f"{text[: mention.start]} it {text[mention.end :]}"
        if label := self.tools.label("").strip(" -#"):
            text = re.sub(rf"\b{re.escape(label)}\b", " ", text, flags=re.IGNORECASE)
        for name in mentions(text, self.names.customers):
            text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
        return text

    def _cases(self) -> tuple[verdict.Case, ...]:
        """Return what the rules are applied to: the tickets named, else what the question itself says.

        A question that compares two plans is two cases.
        """
        if in_force_on(self.text, self.question.now.date()) is None and not self.evidence.tickets:
            return ()
        tickets = self.evidence.tickets
        named = self._named()
        chosen = [t for n in named for t in tickets if t.number == n]
        if not chosen and tickets and not gate.asks(self.text) & {"similar", "aggregate"}:
            chosen = list(tickets)
        asked, vocabulary, now = self._asked(), self.names.vocabulary, self.question.now
        # "How many refunds did Team customers ask for?" counts; it asks for no rule.
        told = (
            ()
            if filters.only_counts(self.text)
            else verdict.cases_in(asked, vocabulary, self.parts.tickets.settings.events, now)
        )
        cases = [verdict.case_of(t, self.tools.label(t.number), f"ticket:{t.number}") for t in chosen[:4]]
        return tuple(verdict.put(asked, case, vocabulary, now) for case in cases or told)

    async def _searched_cases(self) -> tuple[verdict.Case, ...]:
        """Return the cases once their rules are searched, read again where the rules name a kind of case that no ticket is."""
        cases = self._cases()
        await self._second_search(cases)
        if not any(self._wants_verdict(case) for case in cases):
            return cases
        chunks = list(self._rule_chunks().values())
        taught = await self.parts.compute(lambda: scope.taught(self.names.vocabulary, chunks, self._asked()))
        facets = {name: taught[name] for name in self.names.facets}
        self.names = dataclasses.replace(self.names, facets=facets, priority=taught["priority"])
        if (again := self._cases()) != cases:
            await self._second_search(again)
        return again

    async def _second_search(self, cases: Sequence[verdict.Case]) -> None:
        """Run the search that the first one makes possible: the question's topic with the facets of the fetched row."""
        for case in cases:
            if self._wants_verdict(case):
                await self._search_rules(case)
            elif case.evidence and (query := self._looked_up(case)):
                brings = ", ".join(case.facts.values())
                await self._call("search_docs", {"query": query}, f"the ticket brings {brings}")

    def _looked_up(self, case: verdict.Case) -> str:
        """Return the search for what the documents say of a ticket's kind of case ("the API limit of the customer on
        4856"), or nothing where the question is about the ticket itself."""
        if gate.asks(self.text) & {"similar", "aggregate"}:
            return ""
        topic = self._topic() - gate.RECORD
        said = [word for word in words(self._asked()) if set(stems(word)) & topic]
        return " ".join([*said, *case.facts.values()]) if said and case.facts else ""

    async def _search_rules(self, case: verdict.Case) -> None:
        lacking = [value for value in case.facts.values() if not mentions(self.text, [value])]
        topic = self._topic()
        said = dict.fromkeys(word for word in words(self._asked()) if set(stems(word)) & topic)
        unsaid = topic - {stem for word in said for stem in stems(word)}
        query = " ".join([*said, *sorted(unsaid)] or [self.text])
        query = " ".join([query, *case.facts.values()])
        if query in self.searched:
            return
        self.searched.add(query)
        where = Where(readers=self.question.asker.readers, rules_only=True)
        found = await self.tools.search(query, where, self.parts.retrieval.rules)
        if found.failed:
            # A rule may be worded with a synonym, which search by meaning finds and search by words does not.
            wide = " ".join([query, *self._in_other_words()])
            found = await self.tools.search(wide, where, _EVERY, candidates=_EVERY)
            self.hidden = self.hidden or not found.whole
        self.rules |= {hit.chunk.id: hit.chunk for hit in found.hits}
        if case.evidence and lacking:
            await self._call(
                "search_docs", {"query": query, "kind": "rules"}, f"the ticket brings {', '.join(lacking)}"
            )

    def _in_other_words(self) -> list[str]:
        """Return what the question is about as it says it, and the other ways of saying it."""
        topic, synonyms = self._topic(), self.parts.words.synonyms
        said = [word for word in words(self._asked()) if set(stems(word)) & topic]
        return said + [other for word, of in synonyms.items() if set(stems(word)) & topic for other in of]

    def _out_of_reach(self, decided: Verdict | None) -> bool:
        """Tell whether the question asks for a rule that was not searched for in every place where it may stand.

        Neither a weaker rule nor the ticket's own words may then stand in for it.
        """
        return self.hidden and not decided and not gate.asks(self.text) & {"aggregate", "similar"}

    def _wants_verdict(self, case: verdict.Case) -> bool:
        return verdict.wants_verdict(
            self._asked(),
            case,
            actions=self.parts.tickets.settings.actions,
            vocabulary=self.names.vocabulary,
            synonyms=self.parts.words.synonyms,
        )

    async def _decide(self, cases: Sequence[verdict.Case]) -> Verdict | None:
        """Let code decide where a rule does, for each case, and pin what decides it."""
        decided, pinned = await self.parts.compute(lambda: self._decided(cases))
        for chunk in pinned:
            self.evidence.pin(from_chunk(chunk, query="rule", hop=2))
        return decided

    async def _compute_facts(self, cases: Sequence[verdict.Case]) -> None:
        """Search with what the ticket tells, and pin what code computes from its dates and the periods that are found."""
        for case in cases:
            if case.evidence and not gate.asks(self.text) & {"similar", "aggregate"}:
                told = f"{self._asked()} {case.subject} {' '.join(case.facts.values())}"
                await self._search_once(told, "what was asked, with the ticket's subject and fields")
                await self._search_once(case.text[:_TOLD], "what the ticket tells")
        found = await self.parts.compute(
            lambda: self.parts.deciding.facts(
                self._asked(), self.evidence.shown, self.names, self.question.now
            )
        )
        readers = frozenset().union(*(item.readers for item in self.evidence.shown if item.ticket))
        for fact in found.facts:
            item = EvidenceItem(
                0, "computed", f"computed:{fact.text}", "computed", "Computed", "", "", fact.text, readers
            )
            self.evidence.pin(dataclasses.replace(item, rests_on=fact.used))

    async def _search_once(self, query: str, purpose: str) -> None:
        if query not in self.searched and not self.tools.searches.stopped:
            self.searched.add(query)
            await self._call("search_docs", {"query": query}, purpose)

    def _decided(self, cases: Sequence[verdict.Case]) -> tuple[Verdict | None, list[Chunk]]:
        """Return the verdict, and the chunks that decide it; plain work over many rules, for the compute threads."""
        fields = {**self.names.vocabulary, "status": self.names.status, "assignee": self.names.assignees}
        personal = self.parts.tickets.settings.personal
        records = [verdict.of_record(self._asked(), case, fields, personal) for case in cases]
        if records and all(records):
            return verdict.together([record for record in records if record]), []
        if self.hidden:
            return None, []
        chunks = self._rule_chunks()
        found = [self._decide_one(case, chunks) for case in cases if self._wants_verdict(case)]
        decided = [one for one in found if one]
        pinned = [chunks[id_] for one in decided for id_ in one.used if id_ in chunks]
        if len(decided) < len(found) or not decided:
            return None, pinned
        return verdict.together(decided), pinned

    def _rule_chunks(self) -> Mapping[str, Chunk]:
        return {**self.rules, **{i.chunk.id: i.chunk for i in self.evidence.shown if i.chunk is not None}}

    def _decide_one(self, case: verdict.Case, chunks: Mapping[str, Chunk]) -> Verdict | None:
        day = in_force_on(self.text, self.question.now.date())
        past = day is not None and day < self.question.now.date() and not (case.evidence or case.events)
        return verdict.decide(
            self._asked(),
            case,
            chunks.values(),
            vocabulary=self.names.vocabulary,
            synonyms=self.parts.words.synonyms,
            actions=self.parts.tickets.settings.actions,
            anchors=self.parts.tickets.settings.events,
            calendar=self.parts.calendar,
            now=datetime.combine(day, time(12), self.question.now.tzinfo)
            if past and day
            else self.question.now,
        )

    async def _write(self, route: Route) -> tuple[str, str, Route]:
        """Let the model answer, in one call or in the loop; one demonstrated gap sends the direct way to the loop."""
        model = self.parts.model
        try:
            if route.path == "direct":
                reply = await agent.final(self._message(), model, self.budget)
                self.replies.append(reply)
                if reply.text.strip() or self.settled or self.mode == "direct":
                    return reply.text, "answered", route
                route = Route("agent", (*route.reasons, "one search did not answer: escalated"))
            draft = await agent.run(self._message(), self.evidence, model, self.tools, self.budget)
            self.replies += draft.replies
            if draft.error:
                self._failed(draft.error)
            return draft.text, draft.stop, route
        except ModelError as error:
            self._failed(error)
            return "", "the model could not be used", route

    def _failed(self, error: ModelError) -> None:
        self.rejected.append(f"model: {error}")
        self.failure = error.plainly

    def _aside(self, decided: Verdict) -> str:
        """Return what of the question the verdict does not answer, with its topic: "refund another card"."""
        wanted = self._topic() | set(stems(" ".join(decided.beside)))
        return " ".join(word for word in words(self._asked()) if set(stems(word)) & wanted)

    async def _checked(self, draft: str, stop: str, route: Route, decided: Verdict | None) -> Answer:
        """Check the draft; repair once, then quote, then say what was not found."""
        self.gaps += [lost for lost in self.tools.unavailable if lost not in self.gaps]
        result = check.check(draft, self.evidence.shown, decided, self.text)
        self.rejected += (*result.problems, *result.reworded)
        model = self.parts.model
        if result.problems and not decided and model is not self.parts.fallback:
            result = await self._repaired(draft, result)
        text = result.text
        by_code = not self._wrote(text)
        if decided and decided.beside and not text:
            aside = dataclasses.replace(self._message(), text=self._aside(decided), decided=False)
            reply = await agent.quoted(aside, self.parts.fallback, self.budget)
            text = check.check(reply.text, self.evidence.shown, decided, self.text).text
            by_code = True
        if not text and not self.failure and model is not self.parts.fallback:
            self.failure = CHECKS if draft.strip() else SILENT
        if not text and not decided and (model is not self.parts.fallback or not draft):
            reply = await agent.quoted(self._message(), self.parts.fallback, self.budget)
            text = check.check(reply.text, self.evidence.shown, question=self.text).text
            by_code = True
        self.gaps += [step.error for step in self.tools.steps if step.error == NO_RIGHT][:1]
        if not text and not decided:
            if self.tools.searches.lack:
                return self._unavailable(route)
            stop = self.budget.exhausted() or stop
            return self._answer("not_found", self._nothing(), route, None, stop=stop)
        gaps = [*self.gaps, *(decided.gaps if decided else ()), *self._unfiltered(text)]
        shape: Shape = "partial" if gaps or (decided and decided.decision == "undecided") else "answered"
        self.gaps = gaps
        return self._answer(shape, text, route, decided, stop=stop, by_code=by_code)

    def _unfiltered(self, text: str) -> list[str]:
        """Return, as a gap, the words of the question that no ticket list cited in the text is narrowed by."""
        cited = {int(n) for group in check.MARKER.findall(text) for n in group.split(",")}
        tables = [item for item in self.evidence.shown if item.kind == "table" and item.n in cited]
        lost = [word for word in tables[0].unused if all(word in t.unused for t in tables)] if tables else []
        said = ", ".join(f"“{word}”" for word in lost)
        return [f"the ticket list is not narrowed by {said}, for which there is no filter"] if lost else []

    def _wrote(self, text: str) -> bool:
        return bool(text) and self.parts.model is not self.parts.fallback

    async def _repaired(self, draft: str, first: check.Checked) -> check.Checked:
        try:
            reply = await agent.repair(draft, first.problems, self._message(), self.parts.model, self.budget)
        except ModelError as error:
            self._failed(error)
            return check.Checked("", first.problems)
        self.replies.append(reply)
        second = check.check(reply.text, self.evidence.shown, question=self.text)
        self.rejected += (*second.problems, *second.reworded)
        return second if not second.problems else check.Checked("", second.problems)

    # --- the answer --------------------------------------------------------------------------------------------

    async def _call(self, tool: str, arguments: Mapping[str, object], purpose: str) -> None:
        await self.tools.call(ToolCall("", tool, json.dumps(arguments)), by="code", purpose=purpose)

    def _message(self) -> Message:
        return Message(
            "user", self.text, self.evidence.shown, self.question.now, self.names, decided=self.settled
        )

    def _nothing(self) -> str:
        # Code's own queries only: a model's would be its words, unchecked.
        searched = [
            str(s.arguments.get("query", self.text))
            for s in self.tools.steps
            if s.tool == "search_docs"
            and not s.failed
            and (s.by == "code" or self.parts.model is self.parts.fallback)
        ]
        return unanswered.not_found(searched, self.gaps, self.budget.exhausted(), self.parts.words.contact)

    def _unavailable(self, route: Route) -> Answer:
        """Answer that a search did not; or that the time is over, where that is why."""
        if stop := self.budget.exhausted():
            return self._answer("not_found", self._nothing(), route, None, stop=stop)
        text = unanswered.unavailable(self.tools.searches.lack, self.parts.words.contact)
        return self._answer("unavailable", text, route, None, stop="a search did not answer")

    def _lacking(self) -> str:
        """Return what stands beside an answer that something may be missing from."""
        notes = [self.tools.searches.note] if self.tools.searches.note else []
        if self.unread:
            notes.append(sentence(f"{self.unread}, so that something may be missing here"))
        return " ".join(notes)

    def _answer(
        self,
        shape: Shape,
        text: str,
        route: Route,
        decided: Verdict | None,
        *,
        stop: str = "answered",
        by_code: bool = True,
    ) -> Answer:
        if self.unread and shape == "not_found":
            text = unanswered.not_yet(self.unread, self.gaps, self.parts.words.contact)
            shape, stop = "unavailable", "the sources were not read to their end"
        shown = {item.id: item for item in self.evidence.shown}
        body, citations = check.finish(decided, text, shown)
        if self.gaps and shape == "partial":
            body += "\n\nNot settled: " + "; ".join(self.gaps) + "."
        lacking = self._lacking() if shape in ("answered", "partial") else ""
        if lacking:
            shape = "partial"
        cited = {c.source for c in citations}
        used = [
            item for item in shown.values() if item.source in cited or (decided and item.id in decided.used)
        ]
        if aged := stale(used, self.names.tickets_as_of, self.question.now, self.parts.tickets.settings):
            body += f"\n\n{aged}"
        why = sentence(self.failure)
        note = self.parts.fallback.note if by_code and shape in ("answered", "partial") else ""
        if lacking or why or note:
            body += f"\n\n{' '.join(part for part in (lacking, why, note) if part)}"
        if decided:
            numbers = {
                id_: n for c in citations for id_, i in shown.items() if i.source == c.source for n in (c.n,)
            }
            decided = dataclasses.replace(decided, text=verdict.numbered(decided, numbers))
        self._ended("check")
        return Answer(
            shape=shape,
            text=body,
            route=route,
            standalone=self.text,
            verdict=decided,
            citations=citations,
            used=tuple(used),
            steps=tuple(self.tools.steps),
            stop=stop,
            gaps=(*self.gaps, *(lack for lack in (self.tools.searches.lack, self.unread) if lack)),
            usage=self.budget.spent,
            replies=tuple(self.replies),
            rejected=tuple(self.rejected),
            rankings=tuple(self.tools.rankings),
            stages=self.stages,
        )
