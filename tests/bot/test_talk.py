"""Small talk by meaning: what no pattern lists is still no question, and no question is small talk."""

from __future__ import annotations

import pytest

from bot.evaluate import read
from bot.gate import small_talk
from bot.sample import sample
from bot.talk import Talk
from ingest.embed import Embedder

NAMES = ("Starter", "Team", "Business", "Enterprise", "annual", "monthly", "open", "urgent")


@pytest.fixture(scope="module")
def talk(embedder: Embedder) -> Talk:
    return Talk(embedder)


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("off to lunch, bye", "goodbye"),
        ("ok right, that's it from me, have a lovely weekend everyone", "goodbye"),
        ("what are you able to do", "help"),
        ("what sort of stuff can you answer", "help"),
        ("when were you last updated", "sources"),
        ("is there an actual human behind this", "about"),
        ("what did we find out in this thread", "summary"),
        ("that's exactly what i was looking for", "thanks"),
        ("which language model are you based on?", "about"),
        ("can I rely on your answers?", "about"),
        ("do you save what I write to you?", "about"),
        ("what was it that I asked you last?", "summary"),
        ("hola, ¿qué sabes hacer?", "help"),
    ],
)
def test_small_talk_in_other_words(talk: Talk, text: str, meta: str) -> None:
    assert (small_talk(text) or talk.meta(text, NAMES)) == meta


@pytest.mark.parametrize(
    "text",
    [
        "How many tickets were opened on a weekend?",
        "When did we answer?",
        "What did we do with it?",
        "Is it urgent?",
    ],
)
def test_what_speaks_of_the_desks_work_is_a_question(talk: Talk, text: str) -> None:
    assert talk.meta(text, NAMES) is None


def test_no_question_of_the_sample_is_small_talk(talk: Talk) -> None:
    questions = [q for q in read(sample() / "questions-dev.jsonl") if q.type != "smalltalk_meta"]
    assert len(questions) > 100
    assert [q.text for q in questions if talk.meta(q.text, NAMES)] == []


def test_what_names_something_of_the_desks_is_a_question(talk: Talk) -> None:
    assert talk.meta("what do you know about Team?", NAMES) is None
    assert talk.meta("what do you know about ERR_SSO-4032?", NAMES) is None
