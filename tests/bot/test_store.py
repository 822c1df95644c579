"""Turns: what is kept of an answer, how a thread is read back, and that a recorded run can be played again."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot import pipeline
from bot.app import Desk
from bot.store import Store, public
from bot.types import Answer, Asker, Message, Mode, Question, Reply, Route, Step, Usage
from ingest.errors import TwohopError
from tests.bot.test_flagship import QUESTION
from tests.desks import SUPPORT
from tests.scripted import ScriptedModel, calls, says

NOW = datetime(2026, 9, 26, 12, tzinfo=UTC)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    made = Store(database_url)
    yield made
    made.close()


def asked(text: str) -> Question:
    return Question(text, Asker("U1", frozenset({"members"})), NOW)


def said(text: str) -> Answer:
    return Answer(
        "answered",
        text,
        Route("direct", ("one search covers the question",)),
        f"{text}, alone",
        steps=(Step("search_docs", {"query": "ñandú"}, ("docs:a.md",), 7, "code", "first search"),),
        usage=Usage(1, 2, 3, 4),
        replies=(says("raw"), calls(("search_docs", {"query": "x"}))),
        rejected=("'raw' cites nothing",),
    )


def kept(store: Store, id_: str, after: str = "") -> None:
    store.keep(asked(f"Q {id_}"), said(f"A {id_}"), "gated", 12, after=after, id_=id_)


def test_a_turn_comes_back_as_it_was_kept(store: Store) -> None:
    answer = said("A")
    turn = store.keep(asked("Q"), answer, "agent", 34, after="before")
    back = store.get(turn.id)
    assert (back.question, back.text, back.standalone, back.shape) == ("Q", "A", "A, alone", "answered")
    assert (back.user, back.mode, back.after, back.ms) == ("U1", "agent", "before", 34)
    assert back.now == NOW.isoformat()
    detail = json.loads(json.dumps(dict(public(answer, turn.id, 34))))
    assert {name: back.detail[name] for name in detail} == detail
    assert back.detail["steps"][0]["arguments"] == {"query": "ñandú"}
    assert back.detail["rejected"] == ["'raw' cites nothing"]
    assert [reply["text"] for reply in back.detail["replies"]] == ["raw", ""]
    assert back.detail["replies"][1]["calls"][0]["name"] == "search_docs"


def test_a_turn_outlives_its_store(database_url: str) -> None:
    first = Store(database_url)
    kept(first, "aa11")
    first.close()
    second = Store(database_url)
    try:
        assert second.get("aa11").text == "A aa11"
    finally:
        second.close()


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path / 'deep' / 'er' / 'state.db'}").close()
    assert (tmp_path / "deep" / "er" / "state.db").is_file()


def test_the_time_of_a_turn_is_the_same_moment_on_each_database(store: Store) -> None:
    before = datetime.now(UTC)
    kept(store, "one")
    assert before <= store.get("one").asked_at <= datetime.now(UTC)


def test_processes_that_start_together_make_one_database(tmp_path: Path) -> None:
    for attempt in range(10):
        together = threading.Barrier(4)
        failed: list[BaseException] = []

        def start(url: str, together: threading.Barrier, failed: list[BaseException]) -> None:
            together.wait()
            try:
                Store(url).close()
            except BaseException as error:
                failed.append(error)

        url = f"sqlite:///{tmp_path / f'{attempt}.db'}"
        threads = [threading.Thread(target=start, args=(url, together, failed)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []


def test_ids_are_made_and_differ(store: Store) -> None:
    ids = {store.keep(asked("Q"), said("A"), "gated", 1).id for _ in range(5)}
    assert len(ids) == 5
    assert {len(id_) for id_ in ids} == {12}


def test_a_thread_is_read_oldest_first(store: Store) -> None:
    kept(store, "one")
    kept(store, "two", after="one")
    kept(store, "other")
    kept(store, "three", after="two")
    assert [turn.id for turn in store.thread("three", SUPPORT)] == ["one", "two", "three"]
    assert [turn.text for turn in store.thread("two", SUPPORT)] == ["A one", "A two"]
    assert store.thread("", SUPPORT) == ()


def test_a_long_thread_keeps_its_latest_turns(store: Store) -> None:
    for i in range(6):
        kept(store, f"t{i}", after=f"t{i - 1}" if i else "")
    assert [turn.id for turn in store.thread("t5", SUPPORT, most=3)] == ["t3", "t4", "t5"]


def test_a_turn_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    for id_ in ("abc1", "abd2", "ab"):
        kept(store, id_)
    assert store.get("abc").id == "abc1"
    with pytest.raises(TwohopError, match="several turns begin with 'a'"):
        store.get("a")


def test_the_latest_turn_needs_no_id(store: Store) -> None:
    with pytest.raises(TwohopError, match="nothing was asked yet"):
        store.get()
    kept(store, "first")
    kept(store, "last")
    assert store.get().id == "last"


@pytest.mark.parametrize("id_", ["nope", "%", "_", "'; drop table turn; --"])
def test_an_unknown_id_is_named(store: Store, id_: str) -> None:
    kept(store, "abc1")
    with pytest.raises(TwohopError) as raised:
        store.get(id_)
    assert repr(id_) in str(raised.value)
    assert store.get("abc1").text == "A abc1"


def test_a_thread_that_follows_an_unknown_turn_is_an_error(store: Store) -> None:
    with pytest.raises(TwohopError, match="there is no turn 'gone'"):
        store.thread("gone", SUPPORT)


@pytest.mark.parametrize("mode", ["gated", "agent"])
@pytest.mark.parametrize("text", [QUESTION, "How long is the link of a full export valid?"])
async def test_a_recorded_run_can_be_played_again(sample: Desk, text: str, mode: Mode) -> None:
    def cites(messages: Sequence[Message]) -> Reply:
        shown = next(m.evidence for m in reversed(messages) if m.evidence)
        item = next(i for i in shown if i.chunk is not None)
        assert item.chunk is not None
        return says(f"{item.chunk.body.splitlines()[0]} [{item.n}]. It is 99 days [99].")

    question = Question(text, sample.asker(), datetime(2026, 9, 26, 12, tzinfo=sample.zone))
    searched = calls(("search_docs", {"query": "export link"}))
    model = ScriptedModel(*([searched] if mode == "agent" else []), cites, forever=True)
    first = await pipeline.answer(question, dataclasses.replace(sample.parts, model=model), mode)
    assert first.replies
    again = ScriptedModel(*first.replies)
    second = await pipeline.answer(question, dataclasses.replace(sample.parts, model=again), mode)
    again.done()
    assert second.text == first.text
    assert second.citations == first.citations
    assert [(s.tool, s.arguments, s.found) for s in second.steps] == [
        (s.tool, s.arguments, s.found) for s in first.steps
    ]


async def test_the_flagships_turn_knows_its_ticket_and_customer(sample: Desk) -> None:
    done = await sample.answer(QUESTION, now=datetime(2026, 9, 26, 12, tzinfo=sample.zone))
    turn = sample.store.get(done.turn.id)
    assert turn.tickets == ["4812"]
    assert turn.customers == ["Ortega Hardware"]
    (past,) = sample.store.thread(turn.id, SUPPORT)
    assert past.verdict
    assert past.verdict in past.text
    assert past.tickets == ("4812",)
