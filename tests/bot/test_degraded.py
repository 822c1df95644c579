"""A search that is down, or half down: what still answers answers, and the answer says what did not."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot import pipeline
from bot.app import Desk, build
from bot.config import Settings, WordSettings
from bot.parts import Parts
from bot.types import Answer, Limits, Mode, Question
from ingest.config import ElasticsearchSettings
from ingest.embed import Embedder, TextKind, Vectors
from ingest.errors import IndexingError
from ingest.index.elastic import ElasticIndex
from ingest.types import Arm
from tests.desks import answer, prepared, small_settings
from tests.fakes import HashingEmbedder
from tests.faulty import ARMS, Faulty
from tests.indexes import EMBEDDER, IDENTITY
from tests.ingest.elastic_server import ElasticServer, Reply, error
from tests.scripted import ScriptedModel, calls, says

FLAGSHIP = "Is the customer on ticket 4812 entitled to a refund?"
DOWN = "The documents could not be searched"
NO_MEANING = "Search by meaning did not answer, so that this rests on search by words and by codes alone."


@pytest.fixture
def index(sample: Desk) -> Faulty:
    return Faulty(sample.index)


@pytest.fixture
def desk(sample: Desk, index: Faulty, embedder: Embedder, tmp_path: Path) -> Iterator[Desk]:
    """Return a desk over the sample company whose index fails as it is told."""
    settings = sample.settings.model_copy(update={"database_url": f"sqlite:///{tmp_path / 'state.db'}"})
    desk = build(settings, embedder, index=index)
    yield desk
    desk.close()


async def asked(desk: Desk, text: str, model: ScriptedModel, mode: Mode = "gated") -> Answer:
    """Ask with a language model that plays a script."""
    return await put(text, desk, dataclasses.replace(desk.parts, model=model), mode)


async def put(text: str, desk: Desk, parts: Parts, mode: Mode = "gated") -> Answer:
    """Ask with other parts than the desk's own."""
    moment = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return await pipeline.answer(Question(text, desk.asker(), moment), parts, mode)


def says_once(answered: Answer, sentence: str) -> None:
    """Assert that the answer says so once, as a gap too, and shows nobody what the index said."""
    assert answered.text.count(sentence) == 1, answered.text
    assert sum(sentence.startswith(gap) or gap.startswith(sentence) for gap in answered.gaps) == 1, (
        answered.gaps
    )
    assert "it broke" not in answered.text
    assert "secret" not in answered.text


# --- one arm down ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (("dense",), NO_MEANING),
        (
            ("lexical",),
            "Search by words did not answer, so that this rests on search by meaning and by codes alone.",
        ),
        (
            ("codes",),
            "Search by codes did not answer, so that this rests on search by words and by meaning alone.",
        ),
        (
            ("dense", "codes"),
            "Search by meaning and by codes did not answer, so that this rests on search by words alone.",
        ),
    ],
)
async def test_the_other_arms_answer_and_the_answer_says_so(
    desk: Desk, index: Faulty, failing: tuple[Arm, ...], said: str
) -> None:
    index.failing = failing
    answered = await answer(desk, "What does error ERR_SSO-4032 mean?")
    assert answered.shape == "partial", answered.text
    assert "ERR_SSO-4032" in answered.citations[0].quote, answered.citations
    says_once(answered, said)
    assert set(answered.steps[0].failed) == set(failing)
    flagship = await answer(desk, FLAGSHIP)
    assert flagship.verdict is not None, flagship.text
    assert flagship.verdict.decision == "yes"
    assert "13 September" in flagship.text
    assert flagship.shape == "partial"
    says_once(flagship, said)


# --- everything down ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "needed"),
    [
        ("Who is ticket 4812 assigned to?", "Lucía Navarro"),
        ("How many tickets are open, by priority?", "16 found"),
        ("Is ticket 4812 still open?", "open"),
    ],
)
@pytest.mark.parametrize("how", ["unreachable", "every arm"])
async def test_tickets_are_answered_from_their_table(
    desk: Desk, index: Faulty, how: str, question: str, needed: str
) -> None:
    index.down, index.failing = how == "unreachable", ARMS
    answered = await answer(desk, question)
    assert answered.shape == "partial", answered.text
    assert needed in answered.text
    says_once(answered, f"{DOWN}, so that this rests on the tickets alone.")


@pytest.mark.parametrize(
    "question",
    [
        FLAGSHIP,
        "What does error ERR_SSO-4032 mean?",
        "How long after a charge can a customer ask for a refund?",
        "Compare the refund windows of Team and Business",
        "When must ticket 4812 be answered?",
        "Has anybody else reported the problem of TCK-4849?",
    ],
)
@pytest.mark.parametrize("how", ["unreachable", "every arm"])
async def test_what_needs_the_documents_is_not_called_missing_from_them(
    desk: Desk, index: Faulty, how: str, question: str
) -> None:
    index.down, index.failing = how == "unreachable", ARMS
    answered = await answer(desk, question)
    assert answered.shape == "unavailable", answered.text
    assert answered.verdict is None
    assert "could not find" not in answered.text
    assert "14 days" not in answered.text
    assert "ask again" in answered.text
    assert desk.settings.words.contact in answered.text
    says_once(answered, DOWN)


async def test_a_rule_that_the_second_search_should_have_found_is_not_replaced_by_the_first_ones(
    desk: Desk, index: Faulty
) -> None:
    index.failing, index.whole_searches = ARMS, 1
    answered = await answer(desk, FLAGSHIP)
    assert "docs:refunds-faq.md" in answered.steps[1].found
    assert answered.shape == "unavailable", answered.text
    assert answered.verdict is None
    assert "14 days" not in answered.text
    says_once(answered, "A search did not answer")


async def test_no_language_model_is_asked_for_a_rule_that_could_not_be_searched(
    desk: Desk, index: Faulty
) -> None:
    index.down = True
    model = ScriptedModel()
    answered = await asked(desk, FLAGSHIP, model)
    assert answered.shape == "unavailable"
    assert answered.replies == ()


async def test_a_language_model_is_told_that_its_search_was_down_and_shown_no_error(
    desk: Desk, index: Faulty
) -> None:
    index.down = True
    model = ScriptedModel(
        calls(
            ("search_docs", {"query": "who is assigned"}), ("find_tickets", {"customer": "Ortega Hardware"})
        ),
        says("Assignee: Lucía Navarro [1]"),
    )
    answered = await asked(desk, "Who is ticket 4812 assigned to?", model, "agent")
    model.done()
    assert "Lucía Navarro" in answered.text
    assert answered.shape == "partial"
    says_once(answered, f"{DOWN}, so that this rests on the tickets alone.")
    told = [message.text for message in model.requests[1][0] if message.role == "tool"]
    assert "does not answer" in told[0]
    assert told[1].startswith("found")
    assert "secret" not in model.prompts
    searched = [step for step in answered.steps if step.tool == "search_docs"]
    assert all("cannot be reached" in step.failed["lexical"] for step in searched)


async def test_a_language_model_is_told_that_there_may_be_more(desk: Desk, index: Faulty) -> None:
    index.failing = ("dense",)
    model = ScriptedModel(
        calls(("search_docs", {"query": "API limit of the Team plan"})),
        says("Requests to the API are limited [99]."),
        forever=True,
    )
    answered = await asked(desk, "What does error ERR_SSO-4032 mean?", model, "agent")
    told = [message.text for message in model.requests[1][0] if message.role == "tool"]
    assert told[0].startswith("Search by meaning did not answer: there may be more. found")
    says_once(answered, NO_MEANING)


async def test_one_search_is_waited_for_and_only_for_a_part_of_the_time(desk: Desk, index: Faulty) -> None:
    index.failing = ARMS
    answered = await answer(desk, "Has anybody else reported the problem of TCK-4849?", mode="agent")
    assert answered.shape == "unavailable", answered.text
    assert index.searches == 1
    index.failing = ()
    await answer(desk, FLAGSHIP)
    assert max(index.seconds) <= desk.parts.limits.seconds / 3


async def test_what_is_known_is_told_while_the_index_is_down(desk: Desk, index: Faulty) -> None:
    index.down = True
    listed = await answer(desk, "What do you know?")
    assert listed.shape == "chat"
    assert "the index does not answer" in listed.text
    assert "secret" not in listed.text
    index.down = False
    assert "Refunds" in (await answer(desk, "What do you know?")).text


async def test_names_are_known_without_the_index(desk: Desk, index: Faulty) -> None:
    index.down = True
    names = desk.names()
    assert names.titles == ()
    assert "Team" in names.facets["plan"]
    index.down = False
    # A search tells that the index is there again.
    await answer(desk, FLAGSHIP)
    titles = desk.names().titles
    assert "Team plan terms" in titles
    index.down = True
    assert desk.names().titles == titles


async def test_a_kept_turn_tells_which_arm_was_missing_and_why(desk: Desk, index: Faulty) -> None:
    index.failing = ("lexical",)
    kept = await desk.answer("What does error ERR_SSO-4032 mean?")
    assert kept.turn.shape == "partial"
    assert kept.turn.detail["steps"][0]["failed"] == {"lexical": "it broke"}
    assert kept.turn.detail["gaps"] == ["Search by words did not answer"]


@pytest.mark.parametrize("mode", ["naive", "hybrid"])
async def test_a_baseline_says_so_too(desk: Desk, index: Faulty, mode: Mode) -> None:
    index.failing = ("dense",)
    answered = await answer(desk, "What does error ERR_SSO-4032 mean?", mode=mode)
    assert answered.shape in ("unavailable", "partial"), answered.text
    says_once(answered, "Search by meaning did not answer")


async def test_the_next_question_is_whole_again(desk: Desk, index: Faulty) -> None:
    index.down = True
    assert (await answer(desk, FLAGSHIP)).shape == "unavailable"
    index.down = False
    answered = await answer(desk, FLAGSHIP)
    assert answered.shape == "answered"
    assert answered.gaps == ()
    assert answered.verdict is not None
    assert not any(step.failed for step in answered.steps)


# --- which rule a part of the search may hide --------------------------------------------------------------------

TICKET = {
    "number": "TCK-4812",
    "customer": "Ortega Hardware",
    "plan": "Team",
    "status": "open",
    "subject": "Refund of our subscription",
    "body": "We would like a refund, please.",
    "charged_on": "2026-08-14",
    "refund_requested_on": "2026-09-02",
}
OTHER = {**TICKET, "number": "TCK-4813", "customer": "Pixel Orchard", "plan": "Starter"}
FAQ = "---\nauthority: faq\n---\n# Refunds\n\nA refund is possible within 14 days of the charge.\n"
TERMS = (
    "---\nauthority: terms\n---\n# Team plan terms\n\nA refund is possible within 30 days of the charge.\n"
)
FIELDS = {
    "facets": {"plan": "plan"},
    "events": {"charge": "charged_on"},
    "actions": {"refund request": "refund_requested_on"},
}


def keyed(settings: Settings) -> Settings:
    """Return settings whose tickets have a plan, a charge and a refund request."""
    return settings.model_copy(update={"tickets": settings.tickets.model_copy(update=FIELDS)})


Small = Callable[..., tuple[Desk, Faulty]]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    """Return what makes a desk of a few texts whose index fails as it is told."""
    with ExitStack() as open_desks:

        def made(documents: dict[str, str], **more: Any) -> tuple[Desk, Faulty]:
            settings = keyed(small_settings(tmp_path, documents, [TICKET, OTHER], **more))
            whole = prepared(settings, HashingEmbedder())
            open_desks.callback(whole.close)
            index = Faulty(whole.index)
            desk = build(settings, HashingEmbedder(), index=index)
            open_desks.callback(desk.close)
            return desk, index

        yield made


@pytest.mark.parametrize("failing", [(), ("dense",), ("lexical",), ("dense", "codes"), ("lexical", "codes")])
async def test_a_rule_worded_with_a_synonym_is_found_by_every_arm_that_is_left(
    small: Small, failing: tuple[Arm, ...]
) -> None:
    policy = (
        "---\nauthority: policy\n---\n# Our promise\n\n"
        "People get their money back if they say so within 30 days of the charge.\n"
    )
    synonyms = WordSettings(synonyms={"refund": ("money back",)})
    desk, index = small({"faq.md": FAQ, "promise.md": policy}, words=synonyms)
    index.failing = failing
    answered = await answer(desk, FLAGSHIP)
    assert answered.verdict is not None, answered.text
    assert answered.verdict.decision == "yes"
    assert "30 days" in answered.verdict.text


@pytest.mark.parametrize("failing", [("dense",), ("lexical",), ("codes",)])
async def test_no_verdict_where_more_rules_may_be_there_than_the_other_arms_list(
    small: Small, failing: tuple[Arm, ...]
) -> None:
    many = "# Refunds of single items\n\n" + "\n\n".join(
        f"## Item {i}\n\nFor the stamp{i} a refund is possible within 10 days of the charge, on the Team plan too."
        for i in range(520)
    )
    desk, index = small({"faq.md": FAQ, "terms.md": TERMS, "items.md": many})
    index.failing = failing
    answered = await answer(desk, FLAGSHIP)
    assert answered.shape == "unavailable", answered.text
    assert answered.verdict is None
    assert "days" not in answered.text


# --- the real client, and a cluster that fails ---------------------------------------------------------------------

AWAY = error(503, "no_master", "the cluster has no master")
SILENT = Reply(how="silent")
BROKEN = {"error": {"root_cause": [{"type": "circuit_breaking_exception", "reason": "too large"}]}}
SHARDLESS = {"timed_out": False, "_shards": {"total": 1, "failed": 1}, "hits": {"hits": []}}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Desk, ElasticServer]]:
    """Return a desk on an Elasticsearch that is well until it is told otherwise."""
    settings = keyed(small_settings(tmp_path, {"faq.md": FAQ, "terms.md": TERMS}, [TICKET, OTHER]))
    with ElasticServer("fake", IDENTITY, EMBEDDER.dimensions) as server:
        address = ElasticsearchSettings(url=server.url, prefix="fake")
        desk = build(settings, EMBEDDER, index=ElasticIndex(address, IDENTITY, EMBEDDER.dimensions))
        try:
            desk.import_tickets(*settings.tickets.csv)
            desk.sync_documents()
            yield desk, server
        finally:
            server.replies.clear()
            desk.close()


@pytest.mark.parametrize("fault", [BROKEN, SHARDLESS, {"timed_out": True, "hits": {"hits": []}}])
async def test_an_arm_that_the_cluster_refuses_is_said(
    cluster: tuple[Desk, ElasticServer], fault: dict[str, Any]
) -> None:
    desk, server = cluster
    server.arms["dense"] = fault
    answered = await answer(desk, FLAGSHIP)
    assert answered.verdict is not None, answered.text
    assert answered.verdict.decision == "yes"
    says_once(answered, NO_MEANING)


@pytest.mark.parametrize(
    "fault", [AWAY, SILENT, Reply(200, b"<html>"), error(401, "security_exception", "no")]
)
async def test_a_cluster_that_goes_away_is_said_and_found_again_without_a_restart(
    cluster: tuple[Desk, ElasticServer], fault: Reply
) -> None:
    desk, server = cluster
    for path in ("/_msearch", "/fake", "/fake-generation-1/_search"):
        server.say(path, fault)
    limits = Limits(seconds=15.0) if fault is SILENT else desk.parts.limits
    waiting = dataclasses.replace(desk.parts, limits=limits)
    refused = await put(FLAGSHIP, desk, waiting)
    assert refused.shape == "unavailable", refused.text
    assert "days" not in refused.text
    says_once(refused, DOWN)
    plan = await put("What plan is ticket 4812 on?", desk, waiting)
    assert "Plan: Team" in plan.text
    says_once(plan, f"{DOWN}, so that this rests on the tickets alone.")
    assert server.url not in refused.text + plan.text
    server.replies.clear()
    whole = await answer(desk, FLAGSHIP)
    assert whole.verdict is not None, whole.text
    assert (whole.shape, whole.verdict.decision) == ("answered", "yes")


async def test_a_cluster_that_hangs_is_waited_for_a_few_seconds_and_not_listed_again(
    cluster: tuple[Desk, ElasticServer],
) -> None:
    desk, server = cluster
    elastic = ElasticsearchSettings(url=server.url, prefix="fake", timeout_seconds=0.2)
    settings = desk.settings.model_copy(update={"index": "elastic", "elasticsearch": elastic})
    held = ElasticIndex(elastic, IDENTITY, EMBEDDER.dimensions)
    index = Faulty(held)
    hanging = build(settings, EMBEDDER, index=index)
    try:
        for path in ("/_msearch", "/fake", "/fake-generation-1/_search"):
            server.say(path, SILENT)
        described, searched = server.asked("/fake"), server.asked("/_msearch")
        for asked in range(1, 4):
            refused = await answer(hanging, FLAGSHIP)
            assert refused.shape == "unavailable", refused.text
            assert server.asked("/_msearch") == searched + asked
        assert server.asked("/fake") == described + 1
        assert max(index.seconds) <= 0.2
    finally:
        server.replies.clear()
        hanging.close()
        held.close()


def test_a_cluster_that_is_away_at_the_start_stops_the_start(cluster: tuple[Desk, ElasticServer]) -> None:
    desk, server = cluster
    server.say("/", AWAY)
    address = ElasticsearchSettings(url=server.url, prefix="fake")
    settings = desk.settings.model_copy(update={"index": "elastic", "elasticsearch": address})
    with pytest.raises(IndexingError, match=server.url):
        build(settings, EMBEDDER)


# --- each text is embedded once a turn ---------------------------------------------------------------------------


class Counting:
    """An Embedder that counts how often each query is embedded."""

    name, dimensions, max_tokens = (
        HashingEmbedder.name,
        HashingEmbedder.dimensions,
        HashingEmbedder.max_tokens,
    )

    def __init__(self) -> None:
        self._embedder = HashingEmbedder()
        self.queries: Counter[str] = Counter()

    def count(self, text: str) -> int:
        return self._embedder.count(text)

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        if kind == "query":
            self.queries.update(texts)
        return self._embedder.embed(texts, kind)


@pytest.mark.parametrize("question", [FLAGSHIP, "How long is the refund window?", "Can Ortega pay by card?"])
async def test_each_query_of_a_turn_is_embedded_once(tmp_path: Path, question: str) -> None:
    embedder = Counting()
    settings = keyed(small_settings(tmp_path, {"faq.md": FAQ}, [TICKET, OTHER]))
    desk = prepared(settings, embedder)
    await answer(desk, question)
    desk.close()
    assert embedder.queries[question] == 1
    assert set(embedder.queries.values()) == {1}
