"""Chunks: they fit, they lose no word, they are cut where the document allows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.chunk import chunk, ticket_document
from ingest.config import EmbeddingSettings
from ingest.embed import embedder_for
from ingest.errors import ConfigError
from ingest.types import Chunk, Document, Ticket


def count(text: str) -> int:
    """Count as a word-piece tokenizer does: pieces of words, each sign, two special tokens."""
    return 2 + len(re.findall(r"\w{1,6}|[^\w\s]", text))


def document(text: str, title: str = "Team plan terms") -> Document:
    return Document(
        uri="docs:terms/team.md", source="docs", revision="1", title=title, text=text, link="https://x/team"
    )


def bodies(text: str, limit: int = 40, overlap: int = 0) -> list[str]:
    return [piece.body for piece in chunk(document(text, "T"), count, limit, overlap)]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def assert_whole(
    text: str, title: str, chunks: list[Chunk], limit: int, count: Callable[[str], int] = count
) -> None:
    for piece in chunks:
        assert count(piece.text) <= limit
        assert len(piece.text) <= 12 * limit
        assert piece.text == f"{piece.text.partition(chr(10))[0]}\n{piece.body}"
        assert piece.body.strip()
    seen = {word.casefold() for piece in chunks for word in words(piece.text)}
    everything = "\n".join(piece.text for piece in chunks)
    for word in words(f"{title} {text}"):
        if len(word) <= 16:
            assert word.casefold() in seen or any(word in other for other in seen), word
        else:
            assert all(word[at : at + 4] in everything for at in range(0, len(word) - 4, 16)), word[:40]


word = st.sampled_from(
    [
        "refund",
        "window",
        "Team",
        "annual",
        "días",
        "14",
        "naïve",
        "東京都",
        "🎉",
        "👩🏽\u200d🔧",
        "don't",
        "e.g.",
        "x_y",
        "a|b",
        "#1",
        "`code`",
        "**bold**",
        "-",
        "\\|",
        "[a](b)",
    ]
)
sentence = st.lists(word, min_size=1, max_size=40).map(lambda found: " ".join(found) + ".")
paragraph = st.lists(sentence, min_size=1, max_size=4).map("\n".join)
heading = st.tuples(st.integers(1, 6), st.lists(word, min_size=0, max_size=30)).map(
    lambda found: f"{'#' * found[0]} {' '.join(found[1])}"
)
setext = st.tuples(sentence, st.sampled_from(["===", "---"])).map("\n".join)
cells = st.lists(word, max_size=25).map(" ".join)
table = st.tuples(st.integers(1, 5), st.lists(st.lists(cells, min_size=1, max_size=6), max_size=12)).map(
    lambda found: "\n".join(
        [
            "| " + " | ".join(f"Col{n}" for n in range(found[0])) + " |",
            "|" + "|".join("-" * 30 for _ in range(found[0])) + "|",
            *("| " + " | ".join(row) + " |" for row in found[1]),
        ]
    )
)
items = st.lists(st.tuples(st.integers(0, 8), sentence), min_size=1, max_size=10).map(
    lambda found: "\n".join(f"{'  ' * depth}{'-' if depth % 2 else '1.'} {text}" for depth, text in found)
)
quote = paragraph.map(lambda text: "\n".join(f"> {line}" for line in text.split("\n")))
fence = st.tuples(st.sampled_from(["```py", "~~~~", "  ```", "````"]), paragraph, st.booleans()).map(
    lambda found: f"{found[0]}\n{found[1]}" + (f"\n{found[0].rstrip('py')}" if found[2] else "")
)
odd = st.sampled_from(
    [
        "x" * 5000,
        "東" * 700,
        "🎉" * 900,
        "[ref]: https://example.com/a 'title words'",
        "<div>\nraw html\n</div>",
        "***",
        "    indented code",
        ">" * 40 + " deep",
        "- " * 60 + "deep",
        "| a | b |",
        "\tTab\ttext",
        "\x0bvertical",
        "&amp; &lt;entity",
    ]
)
markdown = st.lists(st.one_of(paragraph, heading, setext, table, items, quote, fence, odd), max_size=8)


@settings(max_examples=150, deadline=None)
@given(
    markdown.flatmap(
        lambda blocks: st.sampled_from(["\n\n", "\n", "\r\n\r\n"]).map(lambda end: end.join(blocks))
    ),
    st.lists(word, max_size=20).map(" ".join),
    st.integers(32, 220),
    st.integers(0, 80),
)
@example(
    "\n".join(["| Plan | Window |", "|---|---|", *(f"| P{n} | {n} days |" for n in range(900))]), "T", 60, 10
)
@example(
    "| A | B | C |\n|---|---|---|\n| refund |\n" + "| C |" * 90 + "\n|" + "---|" * 90 + "\n| refund |",
    "",
    32,
    0,
)
@example("# " + "heading " * 400 + "\n\n## Sub\n\ntext", "title " * 300, 40, 40)
@example("\n".join("  " * depth + f"- level {depth}" for depth in range(60)), "T", 48, 8)
def test_every_chunk_fits_and_no_word_is_lost(text: str, title: str, limit: int, overlap: int) -> None:
    chunks = chunk(document(text, title), count, limit, overlap)
    assert_whole(text, title if chunks else "", chunks, limit)
    assert [piece.id for piece in chunks] == [f"docs:terms/team.md#{n}" for n in range(len(chunks))]


@settings(max_examples=40, deadline=None)
@given(markdown.map("\n\n".join))
def test_the_bundled_tokenizer_agrees(text: str) -> None:
    counter = embedder_for(EmbeddingSettings()).count
    assert_whole(text, "T", chunk(document(f"{text}\n\nend", "T"), counter, 64, 10), 64, counter)


@settings(max_examples=60, deadline=None)
@given(markdown.map("\n\n".join), st.integers(32, 120), st.integers(0, 40), st.sampled_from([0, 1, 3]))
def test_a_tokenizer_that_sees_across_white_space_gets_chunks_that_fit_too(
    text: str, limit: int, overlap: int, pairs: int
) -> None:
    """Some merge a blank with the next word, or count line feeds: the parts' sum is not the whole's count."""

    def across(text: str) -> int:
        return count(text) + pairs * text.count("\n") - text.count("d w")

    assert_whole(text, "", chunk(document(text, "T"), across, limit, overlap), limit, across)


def test_context_line_is_title_and_heading_path() -> None:
    chunks = chunk(document("Intro.\n\n## 7 Refunds\n\n### Annual\n\n30 days.\n\n## Other\n\nText."), count)
    assert [piece.text for piece in chunks] == [
        "Team plan terms\nIntro.",
        "Team plan terms > 7 Refunds > Annual\n30 days.",
        "Team plan terms > Other\nText.",
    ]
    assert chunks[1].headings == ("7 Refunds", "Annual")
    assert chunks[1].section == "7 Refunds > Annual"


def test_heading_equal_to_the_title_is_not_said_twice() -> None:
    assert chunk(document("# Team Plan Terms\n\nText."), count)[0].text == "Team plan terms\nText."


def test_long_context_line_leaves_three_fifths_to_the_body() -> None:
    text = "".join(f"{'#' * level} {'heading ' * 30}\n\n" for level in range(1, 5)) + "word " * 300
    for piece in chunk(document(text), count, limit=100):
        assert count(piece.text.partition("\n")[0]) <= 40


def test_heading_without_body_is_kept_when_nothing_below_shows_it() -> None:
    assert [piece.text for piece in chunk(document("## Empty\n\n## Full\n\ntext", "T"), count)] == [
        "T > Empty\nEmpty",
        "T > Full\ntext",
    ]


def test_small_blocks_of_a_section_are_packed_and_sections_are_not() -> None:
    assert bodies("One.\n\nTwo.\n\n- a\n- b\n\n## S\n\nThree.") == ["One.\n\nTwo.\n\n- a\n- b", "Three."]


def test_paragraph_is_cut_at_sentences_and_only_there_repeats() -> None:
    text = " ".join(f"Sentence number {n} has seven words." for n in range(12))
    pieces = bodies(text, limit=40, overlap=12)
    assert all(piece.endswith(".") and piece.startswith("Sentence") for piece in pieces)
    for before, after in pairwise(pieces):
        assert after.split(".")[0] in before
    assert len(set(bodies("\n\n".join(["word " * 15] * 6), overlap=10))) == 1


def test_every_piece_of_a_table_has_the_header() -> None:
    rows = [f"| Plan {n} | annual | {n} days |" for n in range(30)]
    text = "\n".join(["| Plan | Billing | Window |", f"|{'-' * 40}|{'-' * 40}|:{'-' * 40}|", *rows])
    pieces = bodies(text, limit=60)
    assert len(pieces) > 3
    assert all(piece.startswith("| Plan | Billing | Window |\n|---|---|:---|\n| Plan ") for piece in pieces)
    assert [row for piece in pieces for row in piece.split("\n")[2:]] == rows


def test_row_too_long_is_written_out_under_its_own_name() -> None:
    pieces = bodies(f"| Plan | Text |\n|---|---|\n| Team | {'many words ' * 60}|\n| Solo | short |")
    assert all(piece.startswith("Plan: Team\n") for piece in pieces[:-1])
    assert pieces[0].startswith("Plan: Team\nText: many words")
    assert pieces[-1] == "| Plan | Text |\n|---|---|\n| Solo | short |"


def test_list_is_cut_between_items() -> None:
    pieces = bodies("\n".join(f"{n}. item number {n} with a few words" for n in range(1, 13)))
    assert len(pieces) > 2
    assert all(re.match(r"\d+\. item", piece) for piece in pieces)


def test_long_fence_is_fenced_again_and_says_so() -> None:
    pieces = bodies("```sql\n" + "\n".join(f"select column_{n} from t" for n in range(20)) + "\n```")
    assert len(pieces) > 2
    assert pieces[0].startswith("```sql\nselect")
    assert all(piece.startswith("(continued)\n```sql\nselect") for piece in pieces[1:])
    assert all(piece.endswith("\n```") for piece in pieces)


def test_heading_inside_a_fence_is_not_a_heading() -> None:
    assert bodies("```\n# comment\n```\n\ntext") == ["```\n# comment\n```\n\ntext"]


def test_what_the_document_carries_reaches_each_chunk() -> None:
    source = Document(
        uri="docs:a.md", source="docs", revision="1", title="A", text="x", link="https://x/a", authority="terms",
        readers=frozenset({"support"}), facets={"plan": "Team"}, effective_from=date(2025, 1, 1),
    )  # fmt: skip
    (piece,) = chunk(source, count)
    assert (piece.link, piece.authority, piece.readers) == ("https://x/a", "terms", frozenset({"support"}))
    assert (piece.facets, piece.effective_from) == ({"plan": "Team"}, date(2025, 1, 1))


def test_rules_are_attached() -> None:
    (piece,) = chunk(document("Annual subscriptions may be refunded within 30 days of the charge."), count)
    assert [(rule.amount, rule.unit, rule.chunk) for rule in piece.rules] == [(30, "day", piece.id)]


def test_no_room_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_tokens 4"):
        chunk(document("word"), lambda text: 10, limit=4)


def test_ticket_has_no_customer_no_personal_column_and_no_markdown_of_its_own() -> None:
    ticket = Ticket(
        number="4812", customer="Ortega Hardware", subject="Refund\u202e | please",
        body="# Not a heading\n```\n| a | b |\n|---|---|\nrefunded within 30 days", resolution="Done\n===",
        facets={"plan": "Team"}, personal={"email": "ana@example.com"}, opened_at=datetime(2025, 9, 2, tzinfo=UTC),
    )  # fmt: skip
    found = ticket_document(ticket, "7")
    assert (found.uri, found.title, found.kind) == ("tickets:4812", "Ticket 4812: Refund | please", "ticket")
    assert (found.readers, found.facets) == (frozenset({"support"}), {"plan": "Team"})
    assert "Ortega" not in found.text
    assert "ana@" not in found.text
    pieces = chunk(found, count)
    assert [piece.headings for piece in pieces] == [("Problem",), ("Resolution",)]
    assert [piece.rules for piece in pieces] == [(), ()]
