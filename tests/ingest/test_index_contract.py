"""The contract of every SearchIndex: the embedded one, and with --elasticsearch URL a real Elasticsearch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.config import ElasticsearchSettings
from ingest.errors import IdentityMismatch, IndexingError
from ingest.index import SearchIndex, Swept
from ingest.index.elastic import ElasticIndex
from ingest.index.payload import from_json, to_json
from ingest.index.sqlite import SqliteIndex, identity
from ingest.types import Document, Rule, Where
from tests.indexes import ARMS, EMBEDDER, IDENTITY, MEMBERS, cluster, everywhere, ids, rank, write

OpenIndex = Callable[..., SearchIndex]


@pytest.fixture
def elastic_settings(request: pytest.FixtureRequest) -> Iterator[ElasticsearchSettings]:
    """Return settings with a prefix of the test's own, of which nothing is left afterwards."""
    with cluster(request.config.getoption("--elasticsearch")) as (settings, _):
        yield settings


@pytest.fixture(params=["sqlite", pytest.param("elastic", marks=pytest.mark.elasticsearch)])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenIndex]:
    """Return a function that opens the test's index, each time as another process would."""
    opened: list[SearchIndex] = []
    elastic = request.getfixturevalue("elastic_settings") if request.param == "elastic" else None

    def open_one(identity: str = IDENTITY, **more: Any) -> SearchIndex:
        index: SearchIndex
        if elastic:
            index = ElasticIndex(elastic, identity, EMBEDDER.dimensions, **more)
        else:
            index = SqliteIndex(tmp_path / "index", identity, **more)
        opened.append(index)
        return index

    yield open_one
    for index in opened:
        index.close()


@pytest.fixture
def index(open_index: OpenIndex) -> SearchIndex:
    return open_index()


# Writing


def test_a_document_is_found_by_a_word_of_it_right_after_flush(index: SearchIndex) -> None:
    write(index, "docs:a", "The zeppelin E-1234 departs.")
    found = rank(index, "zeppelins E-1234")
    assert {arm: ids(found, arm) for arm in ARMS} == {arm: ["docs:a#0"] for arm in ARMS}
    assert not found.failed


def test_a_deleted_document_is_in_no_arm(index: SearchIndex) -> None:
    write(index, "docs:a", "The zeppelin E-1234 departs.", "Second part.")
    write(index, "docs:b", "The zeppelin E-1234 stays.")
    index.delete("docs:a")
    index.delete("docs:never-there")
    index.flush()
    found = rank(index, "zeppelin E-1234")
    assert everywhere(found) == {"docs:b#0"}
    assert index.revisions("docs") == {"docs:b": "1"}


def test_a_replaced_document_is_found_by_its_new_words_only(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin E-1234", "zeppelin again", "and again")
    write(index, "docs:a", "submarine F-5678", revision="2")
    found = rank(index, "zeppelin E-1234")
    assert ids(found, "lexical") == []
    assert ids(found, "codes") == []
    assert ids(found, "dense") == ["docs:a#0"]
    assert ids(rank(index, "submarine"), "lexical") == ["docs:a#0"]
    assert index.revisions("docs") == {"docs:a": "2"}


def test_another_source_is_not_touched(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin")
    write(index, "tickets:1", "zeppelin", kind="ticket")
    index.delete("docs:a")
    index.flush()
    assert index.revisions("docs") == {}
    assert index.revisions("tickets") == {"tickets:1": "1"}
    assert everywhere(rank(index, "zeppelin", replace(MEMBERS, kind="ticket"))) == {"tickets:1#0"}


def test_a_document_without_chunks_is_known_and_not_found(index: SearchIndex) -> None:
    document = Document("docs:a", "docs", "1", "Empty", "", "/a")
    index.replace(document, [], np.zeros((0, EMBEDDER.dimensions), np.float32))
    index.flush()
    assert index.revisions("docs") == {"docs:a": "1"}
    assert everywhere(rank(index, "empty")) == set()


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones((2, 64), np.float32),
        np.ones((0, 64), np.float32),
        np.ones((1, 63), np.float32),
        np.full((1, 64), np.nan, np.float32),
    ],
)
def test_wrong_vectors_are_refused_and_lose_nothing(index: SearchIndex, vectors: Any) -> None:
    (chunk,) = write(index, "docs:a", "zeppelin")
    changed = Document("docs:a", "docs", "2", "Page", "submarine", "/a")
    with pytest.raises(IndexingError, match="'docs:a'"):
        index.replace(changed, [replace(chunk, text="Page\nsubmarine")], vectors)
    assert ids(rank(index, "zeppelin"), "lexical") == ["docs:a#0"]
    assert index.revisions("docs") == {"docs:a": "1"}


def test_chunks_of_another_document_or_with_one_id_are_refused(index: SearchIndex) -> None:
    (other,) = write(index, "docs:other", "zeppelin")
    document = Document("docs:a", "docs", "1", "Page", "zeppelin", "/a")
    own = replace(other, id="docs:a#0", uri="docs:a")
    for chunks in ([other], [own, own], [replace(own, id=other.id)]):
        with pytest.raises(IndexingError, match="'docs:a'"):
            index.replace(document, chunks, EMBEDDER.embed(["x"] * len(chunks)))
    assert everywhere(rank(index, "zeppelin")) == {"docs:other#0"}


def test_a_chunk_comes_back_as_it_was_written(index: SearchIndex) -> None:
    rule = Rule(
        *("Refunds within 14 days of the charge.", 14, "day", "allows", "charge"),
        hedges=("normally",),
        labels=("Window", "Plan: Team"),
        effective_from=date(2026, 1, 1),
    )
    (chunk,) = write(
        index,
        "docs:a",
        "Zeppelin \x00 “quoted” \\ ünïcode 🎈\nsecond line\ttab",
        title='Terms "2026"',
        headings=("Refunds", "Team"),
        readers=frozenset({"members", "support"}),
        facets={"plan": "Team", "Región": "Cádiz"},
        language="es",
        authority="terms",
        effective_from=date(2026, 1, 1),
        superseded_on=date(2027, 1, 1),
        rules=(rule, replace(rule, amount=None, unit=None, polarity="forbids")),
    )
    found = rank(index, "zeppelin")
    assert found.arms["lexical"][0].chunk == chunk
    assert found.arms["dense"][0].chunk == chunk
    assert from_json(to_json(chunk)) == chunk


def test_documents_are_listed_for_their_readers_by_title(index: SearchIndex) -> None:
    write(index, "docs:b", "x", "y", title="apple", superseded_on=date(2026, 2, 1))
    write(index, "docs:a", "x", title="Banana")
    write(index, "docs:c", "x", title="Cherry", readers=frozenset({"finance"}))
    write(index, "tickets:1", "x", title="Ticket", kind="ticket")
    listed = index.documents(MEMBERS)
    assert [(info.title, info.chunks) for info in listed] == [("apple", 2), ("Banana", 1)]
    assert listed[0].superseded_on == date(2026, 2, 1)
    assert listed[0].indexed_at.tzinfo
    in_force = index.documents(replace(MEMBERS, in_force_on=date(2026, 2, 1)))
    assert [info.uri for info in in_force] == ["docs:a"]


# Ranking


def test_an_exact_title_and_an_error_code_are_in_the_top_three(index: SearchIndex) -> None:
    for i in range(40):
        write(index, f"docs:{i}", f"How to export invoices and sign in, error 4{i:03}", title=f"Guide {i}")
    write(index, "docs:export", "Go to settings.", title="Exporting invoices to a spreadsheet")
    write(index, "docs:sso", "ERR_SSO-4032 means that the certificate expired.", title="Errors")
    write(index, "docs:other", "ERR_SSO-4033 means something else; ERR_NET-4032 too.", title="Errors")
    assert "docs:export#0" in ids(rank(index, "Exporting invoices to a spreadsheet"), "lexical")[:3]
    for query in ("ERR_SSO-4032", "err_sso-4032", "what is ERR_SSO-4032?"):
        found = rank(index, query)
        assert ids(found, "codes")[0] == "docs:sso#0", query
        assert "docs:sso#0" in ids(found, "lexical")[:3], query


def test_a_whole_code_ranks_above_a_part_and_a_rare_one_above_a_common_one(index: SearchIndex) -> None:
    write(index, "docs:part", "INV-4812 was paid.")
    write(index, "docs:whole", "4812 is the number.")
    for i in range(5):
        write(index, f"docs:common{i}", "Release v2.3.1 is out.")
    write(index, "docs:rare", "Build 0x80070005 failed.")
    assert ids(rank(index, "4812"), "codes") == ["docs:whole#0", "docs:part#0"]
    assert ids(rank(index, "INV-4812"), "codes")[0] == "docs:part#0"
    assert ids(rank(index, "v2.3.1 0x80070005"), "codes")[0] == "docs:rare#0"
    assert ids(rank(index, "no codes here"), "codes") == []


def test_a_title_weighs_more_than_the_text(index: SearchIndex) -> None:
    write(index, "docs:text", "About billing, the zeppelin and other things.", title="Page")
    write(index, "docs:title", "About billing, the airship and other things.", title="Zeppelin")
    assert ids(rank(index, "zeppelin"), "lexical") == ["docs:title#0", "docs:text#0"]


def test_a_heading_is_found_like_a_title(index: SearchIndex) -> None:
    write(index, "docs:a", "Nothing here.", headings=("Überweisung “soon”", "Zeppelin"))
    assert ids(rank(index, "zeppelin"), "lexical") == ["docs:a#0"]
    assert ids(rank(index, "uberweisung"), "lexical") == ["docs:a#0"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Das Café erstattet die Gebühr.", "cafe gebuhr"),
        ("El reembolso se pidió después.", "DESPUES"),
        ("Возврат денег возможен", "возврат"),
        ("Refunds are 🎈 fun", "🎈 refund"),
        ("Customers’ invoices", "customer's invoice"),
    ],
)
def test_words_of_other_languages_are_found(index: SearchIndex, text: str, query: str) -> None:
    write(index, "docs:a", text)
    assert ids(rank(index, query), "lexical") == ["docs:a#0"]


def test_stop_words_count_only_when_there_is_nothing_else(index: SearchIndex) -> None:
    write(index, "docs:a", "who are you and what is it about")
    write(index, "docs:b", "zeppelin")
    assert ids(rank(index, "what about the zeppelin"), "lexical") == ["docs:b#0"]
    assert ids(rank(index, "what is it about"), "lexical") == ["docs:a#0"]


def test_ties_are_broken_by_id(index: SearchIndex) -> None:
    for name in ("c", "a", "d", "b"):
        write(index, f"docs:{name}", "zeppelin E-1234")
    found = rank(index, "zeppelin E-1234", k=3)
    for arm in ARMS:
        assert ids(found, arm) == ["docs:a#0", "docs:b#0", "docs:c#0"]
        assert len({scored.score for scored in found.arms[arm]}) == 1


def test_without_a_vector_the_dense_arm_is_left_out(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin")
    found = index.rank("zeppelin", None, 5, MEMBERS, time.monotonic() + 30)
    assert set(found.arms) == {"lexical", "codes"}
    assert not found.failed


def test_an_arm_that_fails_is_named_and_the_others_answer(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin")
    found = index.rank("zeppelin", np.ones(3, np.float32), 5, MEMBERS, time.monotonic() + 30)
    assert ids(found, "lexical") == ["docs:a#0"]
    assert set(found.failed) == {"dense"}
    assert "3" in found.failed["dense"]


def test_after_the_deadline_every_arm_is_late(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin")
    found = rank(index, "zeppelin", seconds=-1)
    assert found.arms == {}
    assert set(found.failed) == set(ARMS)


def test_an_empty_index_answers_with_nothing(index: SearchIndex) -> None:
    found = rank(index, "zeppelin E-1234")
    assert everywhere(found) == set()
    assert not found.failed
    assert index.documents(MEMBERS) == ()


# Filters

FILTERS: Mapping[str, tuple[Where, dict[str, Any], list[dict[str, Any]]]] = {
    "readers": (
        Where(frozenset({"members", "support"})),
        {"readers": frozenset({"support", "legal"})},
        [{"readers": frozenset({"finance"})}, {"readers": frozenset()}],
    ),
    "kind": (replace(MEMBERS, kind="ticket"), {"kind": "ticket"}, [{"kind": "doc"}]),
    "facets": (
        replace(MEMBERS, facets={"Plan": "TEAM", "region": "EU"}),
        {"facets": {"plan": "Team", "region": "eu", "tier": "1"}},
        [{"facets": {"plan": "Team"}}, {"facets": {"plan": "Starter", "region": "EU"}}, {}],
    ),
    "rules_only": (
        replace(MEMBERS, rules_only=True),
        {"rules": (Rule("x", 1, "day", "allows"),)},
        [{}],
    ),
    "language": (
        replace(MEMBERS, language="es"),
        {"language": "es"},
        [{"language": "en"}, {}],
    ),
    "in_force_on": (
        replace(MEMBERS, in_force_on=date(2026, 6, 1)),
        {"effective_from": date(2026, 6, 1), "superseded_on": date(2026, 6, 2)},
        [{"superseded_on": date(2026, 6, 1)}, {"effective_from": date(2026, 6, 2)}],
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_hold_in_every_arm_before_the_cut(index: SearchIndex, name: str) -> None:
    where, right, wrong = FILTERS[name]
    write(index, "docs:right", "zeppelin E-1234 " + "and other words " * 5, **right)
    for i, fields in enumerate(wrong):
        for copy in range(5):
            write(index, f"docs:wrong{i}{copy}", "zeppelin E-1234", **fields)
    found = rank(index, "zeppelin E-1234", where, k=1)
    for arm in ARMS:
        assert ids(found, arm) == ["docs:right#0"], arm
    assert everywhere(rank(index, "zeppelin E-1234", where, k=50)) == {"docs:right#0"}


def test_without_the_filter_every_version_is_found(index: SearchIndex) -> None:
    write(index, "docs:old", "zeppelin", superseded_on=date(2026, 1, 1))
    write(index, "docs:new", "zeppelin", effective_from=date(2026, 1, 1))
    assert len(ids(rank(index, "zeppelin"), "lexical")) == 2


def test_changed_readers_count_from_the_next_question(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin E-1234")
    assert everywhere(rank(index, "zeppelin E-1234"))
    write(index, "docs:a", "zeppelin E-1234", readers=frozenset({"legal"}), revision="2")
    assert everywhere(rank(index, "zeppelin E-1234")) == set()


# What people type

NASTY = (
    *('"', "(", ")", "*", ":", "^", "-", "NEAR", "AND", "OR", "NOT", "NEAR(a b, 3)", "title:zeppelin"),
    *(
        '"unbalanced',
        "a AND",
        "OR OR",
        "- -",
        "{title text} : x",
        "zep*",
        "^zep",
        "+",
        "col:",
        "''",
        "--",
        ";",
    ),
    *(
        "\x00",
        "a\x00b",
        "\x1b[31m",
        "\u202e",
        "🎈",
        "👩‍👩‍👧",
        "\ud800",
        "\ufeff",
        "ﷺ",
        "İ",
        "ß",
        "",
        " ",
        "\n",
    ),
)


@pytest.mark.parametrize("query", NASTY, ids=range(len(NASTY)))
def test_what_a_user_types_is_never_syntax(index: SearchIndex, query: str) -> None:
    write(index, "docs:a", "zeppelin and more")
    for text in (query, f"{query} zeppelin", f"zeppelin{query}", f"{query}{query}"):
        found = rank(index, text)
        assert not found.failed, text
    assert ids(rank(index, f"{query} zeppelin"), "lexical") == ["docs:a#0"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.one_of(st.sampled_from("\"()*:^-+{}'\\ \x00\n"), st.characters()), max_size=60))
def test_no_text_breaks_a_search(index: SearchIndex, query: str) -> None:
    if not index.revisions("docs"):
        write(index, "docs:a", "zeppelin and more")
    assert not rank(index, query).failed


def test_a_pasted_log_file_is_a_question(index: SearchIndex) -> None:
    for i in range(50):
        write(index, f"docs:{i}", f"Worker request finished with status code for user {i}")
    write(index, "docs:needle", "The zeppelinocapture flag E-77123 is wrong.")
    line = "2026-11-30T10:00:00 worker request finished status {} code for user host-{}.example.com\n"
    log = "".join(line.format(i, i * 7) for i in range(1000))
    text = f"{log[:50_000]}zeppelinocapture E-77123\n{log[50_000:]}"
    assert len(text) > 80_000
    found = rank(index, text)
    assert not found.failed
    assert ids(found, "codes")[0] == "docs:needle#0"
    assert not rank(index, "x" * 100_000).failed
    assert not rank(index, '"' * 100_000).failed


# Several at once


def test_another_process_s_commit_is_seen_by_the_next_question(open_index: OpenIndex) -> None:
    reader, writer = open_index(), open_index()
    write(writer, "docs:a", "zeppelin")
    assert ids(rank(reader, "zeppelin"), "dense") == ["docs:a#0"]
    write(writer, "docs:b", "zeppelin")
    writer.delete("docs:a")
    writer.flush()
    found = rank(reader, "zeppelin")
    assert ids(found, "dense") == ids(found, "lexical") == ["docs:b#0"]


def test_lists_and_matrix_never_disagree_while_somebody_writes(open_index: OpenIndex) -> None:
    index, writer = open_index(), open_index()
    names = [f"docs:{i}" for i in range(12)]

    def version(number: int, name: str) -> None:
        texts = [f"zeppelin E-1234 version{number}" for _ in range(1 + number % 3)]
        write(writer, name, *texts, revision=str(number))

    for name in names:
        version(0, name)
    query = "zeppelin E-1234"
    vector = EMBEDDER.embed([query], "query")[0]
    assert not rank(index, query).failed
    stop = threading.Event()
    problems: list[str] = []
    searches = 0

    def read() -> None:
        nonlocal searches
        while not stop.is_set():
            try:
                found = index.rank(query, vector, 100, MEMBERS, time.monotonic() + 30)
            except Exception as error:
                problems.append(repr(error))
                return
            searches += 1
            if found.failed:
                problems.append(str(found.failed))
            seen = {arm: {(s.chunk.id, s.chunk.text) for s in ranking} for arm, ranking in found.arms.items()}
            if not seen["lexical"] == seen["dense"] == seen["codes"]:
                problems.append("the arms disagree")
            if {chunk.partition("#")[0] for chunk, _ in seen["dense"]} != set(names):
                problems.append("a document is missing or doubled")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    ends = time.monotonic() + 2
    number = 0
    while number < 20 or time.monotonic() < ends:
        number += 1
        version(number, names[number % len(names)])
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert searches > 20


# Generations


def test_a_rebuild_is_seen_by_nobody_before_it_is_published(open_index: OpenIndex) -> None:
    index, other = open_index(), open_index()
    write(index, "docs:a", "zeppelin")
    generation = index.rebuild()
    write(generation, "docs:b", "submarine")
    assert everywhere(rank(other, "zeppelin submarine")) == {"docs:a#0"}
    assert ids(rank(generation, "submarine"), "lexical") == ["docs:b#0"]
    assert generation.revisions("docs") == {"docs:b": "1"}
    generation.publish()
    for handle in (index, other):
        assert everywhere(rank(handle, "zeppelin submarine")) == {"docs:b#0"}
        assert handle.revisions("docs") == {"docs:b": "1"}
    write(index, "docs:c", "airship")
    assert ids(rank(other, "airship"), "lexical") == ["docs:c#0"]


def test_a_discarded_rebuild_leaves_nothing(index: SearchIndex) -> None:
    write(index, "docs:a", "zeppelin")
    generation = index.rebuild()
    write(generation, "docs:b", "submarine")
    generation.discard()
    assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}
    assert len(index.generations()) == 1
    index.rebuild().discard()


def test_rollback_brings_the_generation_before_back(open_index: OpenIndex) -> None:
    index, other = open_index(), open_index()
    write(index, "docs:a", "zeppelin")
    generation = index.rebuild()
    write(generation, "docs:b", "submarine")
    generation.publish()
    assert everywhere(rank(other, "zeppelin submarine")) == {"docs:b#0"}
    first, second = reversed(index.generations())
    assert (first.live, second.live) == (False, True)
    assert index.rollback().name == first.name
    assert everywhere(rank(other, "zeppelin submarine")) == {"docs:a#0"}
    with pytest.raises(IndexingError, match="rebuild"):
        index.rollback()
    # A rebuild after a rollback is a new index, also for those who still held the one that was rolled back.
    generation = index.rebuild()
    write(generation, "docs:c", "airship")
    generation.publish()
    assert everywhere(rank(other, "zeppelin submarine airship")) == {"docs:c#0"}
    assert index.rollback().name == first.name


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_as_many_old_generations_are_kept_as_are_wanted(open_index: OpenIndex, keep: int) -> None:
    index = open_index(keep=keep)
    for i in range(5):
        generation = index.rebuild()
        write(generation, f"docs:{i}", "zeppelin")
        generation.publish()
    assert [info.live for info in index.generations()] == [True, *[False] * keep]
    for _ in range(keep):
        index.rollback()
    assert everywhere(rank(index, "zeppelin")) == {f"docs:{4 - keep}#0"}
    with pytest.raises(IndexingError, match="no generation before"):
        index.rollback()


def test_more_than_nine_generations_are_gone_back_through_one_by_one(open_index: OpenIndex) -> None:
    index = open_index(keep=11)
    for i in range(13):
        generation = index.rebuild()
        write(generation, f"docs:{i}", "zeppelin")
        generation.publish()
    assert len(index.generations()) == 12
    for i in reversed(range(1, 13)):
        assert everywhere(rank(index, "zeppelin")) == {f"docs:{i}#0"}
        if i > 1:
            index.rollback()
    with pytest.raises(IndexingError, match="no generation before"):
        index.rollback()


def test_one_rebuild_at_a_time(open_index: OpenIndex) -> None:
    index, other = open_index(), open_index()
    generation = index.rebuild()
    with pytest.raises(IndexingError, match="another rebuild is running"):
        other.rebuild()
    generation.discard()
    other.rebuild().discard()


def test_another_identity_is_refused_with_both_and_the_command(open_index: OpenIndex) -> None:
    write(open_index(), "docs:a", "zeppelin")
    same_size = identity("other/model", EMBEDDER.dimensions, "1")
    with pytest.raises(IdentityMismatch) as caught:
        open_index(same_size)
    for expected in (IDENTITY, same_size, "twohop index --rebuild"):
        assert expected in str(caught.value)


def test_a_rebuild_mends_another_identity_and_a_running_process_answers_from_what_it_has(
    open_index: OpenIndex,
) -> None:
    running = open_index()
    write(running, "docs:a", "zeppelin")
    new = open_index("new/model@64", for_rebuild=True)
    generation = new.rebuild()
    write(generation, "docs:b", "submarine")
    generation.publish()
    assert everywhere(rank(new, "submarine")) == {"docs:b#0"}
    for _ in range(2):
        assert everywhere(rank(running, "zeppelin submarine")) == {"docs:a#0"}
        assert [info.uri for info in running.documents(MEMBERS)] == ["docs:a"]
    with pytest.raises(IdentityMismatch):
        write(running, "docs:c", "airship")
    with pytest.raises(IdentityMismatch):
        new.rollback()
    with pytest.raises(IdentityMismatch):
        open_index()


def test_a_sweep_removes_what_a_dead_rebuild_left_and_nothing_of_a_live_one(open_index: OpenIndex) -> None:
    index, other = open_index(), open_index()
    write(index, "docs:a", "zeppelin")
    generation = index.rebuild()
    assert other.sweep().removed == ()
    assert other.sweep().waiting
    generation.publish()
    rebuilt = index.generations()[0].name
    index.rollback()
    assert other.sweep().removed == (rebuilt,)
    assert other.sweep() == Swept()
    assert everywhere(rank(other, "zeppelin")) == {"docs:a#0"}
