"""What only the Elasticsearch index promises: every fault is named with its next step, and nothing is lost by it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from ingest.config import ElasticsearchSettings
from ingest.errors import ConfigError, DocumentRefused, IndexingError
from ingest.index.elastic import ElasticIndex
from ingest.types import Document
from tests.indexes import ARMS, EMBEDDER, IDENTITY, MEMBERS, cluster, everywhere, ids, rank, write
from tests.ingest.elastic_server import CERTIFICATE, PRODUCT, ElasticServer, Reply, error, fingerprint

KEY = "c2VjcmV0OnNlY3JldA=="


@pytest.fixture
def server() -> Iterator[ElasticServer]:
    with ElasticServer("fake", IDENTITY, EMBEDDER.dimensions) as server:
        yield server


@pytest.fixture
def index(server: ElasticServer) -> Iterator[ElasticIndex]:
    with opened(server.url) as index:
        yield index


def opened(url: str, **more: Any) -> ElasticIndex:
    return ElasticIndex(ElasticsearchSettings(url=url, prefix="fake", **more), IDENTITY, EMBEDDER.dimensions)


# The start


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (error(401, "security_exception", "unable to authenticate"), "ELASTICSEARCH_API_KEY"),
        (
            error(
                403, "security_exception", "action [cluster:monitor/main] is unauthorized for API key id [x]"
            ),
            "cluster:monitor/main.*README",
        ),
        (
            error(
                403,
                "security_exception",
                "current license is non-compliant for [x]",
                **{"license.expired.feature": "x"},
            ),
            "licence",
        ),
        (Reply(200, {"version": {"number": "2.19.0", "distribution": "opensearch"}}, {}), "OpenSearch"),
        (Reply(200, b"<html>Welcome to nginx</html>", {"Content-Type": "text/html"}), "OpenSearch.*proxies"),
        (Reply(200, b"<html>", {**PRODUCT, "Content-Type": "application/json"}), "JSON"),
        (Reply(200, {"version": {"number": "7.17.9"}}), r"'7\.17\.9'.*8\.14"),
        (Reply(200, {"version": {"number": "8.13.4"}}), r"'8\.13\.4'.*8\.14"),
        (error(503, "cluster_not_ready", "no master"), "not ready"),
        (Reply(502, b"Bad Gateway", {"Content-Type": "text/html"}), "502"),
        (Reply(200, {}, how="truncated"), "cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used_stops_the_start_with_the_reason(
    server: ElasticServer, reply: Reply, told: str
) -> None:
    server.say("/", reply)
    with pytest.raises(IndexingError, match=told) as caught:
        opened(server.url, api_key=KEY)
    assert repr(server.url) in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_server_that_is_starting_is_waited_for_a_moment(server: ElasticServer) -> None:
    server.say("/", error(503, "x", "starting"), Reply(200, {}, how="truncated"), Reply(0))
    opened(server.url).close()
    assert server.asked("/") == 3


def test_a_feature_or_a_right_that_is_missing_is_told_at_the_start(server: ElasticServer) -> None:
    refused = {"type": "security_exception", "reason": "current license is non-compliant for [knn]"}
    server.arms["dense"] = {"error": {"root_cause": [refused], **refused}, "status": 403}
    with pytest.raises(IndexingError, match=r"dense.*non-compliant for \[knn\]"):
        opened(server.url)
    server.arms.clear()
    server.say("/_msearch", error(403, "security_exception", "read is unauthorized"))
    with pytest.raises(IndexingError, match="read is unauthorized"):
        opened(server.url)


def test_nothing_is_left_open_by_a_close_nor_by_a_start_that_fails(server: ElasticServer) -> None:
    def threads() -> int:
        return sum(thread.name == "elasticsearch" for thread in threading.enumerate())

    before = threads()
    index = opened(server.url)
    assert threads() == before + 1
    index.close()
    index.close()
    assert threads() == before
    server.say("/", error(401, "security_exception", "no"))
    with pytest.raises(IndexingError):
        opened(server.url)
    assert threads() == before


def test_nobody_there_is_told(server: ElasticServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(IndexingError, match=f"{port}.*ELASTICSEARCH_URL"):
        opened(f"http://127.0.0.1:{port}")


def test_a_node_that_is_down_is_told_in_the_system_s_words() -> None:
    with pytest.raises(IndexingError, match=r"cannot be reached \(Connection refused\); check"):
        opened("http://127.0.0.1:9")


def test_a_path_that_a_proxy_passes_on_is_part_of_every_request(server: ElasticServer) -> None:
    behind = server.answer
    paths: list[str] = []

    def proxy(method: str, path: str, body: str, headers: Message) -> Reply:
        paths.append(path)
        return behind(method, path.removeprefix("/search"), body, headers)

    server.answer = proxy
    with opened(f"{server.url}/search") as index:
        write(index, "docs:a", "zeppelin")
        assert everywhere(rank(index, "zeppelin")) == {"docs:a#0"}
    assert all(path.startswith("/search/") for path in paths)


@pytest.mark.parametrize(
    "reply", [error(404, "index_not_found_exception", "no such index [search]"), Reply(200, {"search": {}})]
)
def test_a_path_at_which_no_elasticsearch_answers_is_named(server: ElasticServer, reply: Reply) -> None:
    server.say("/search/", reply)
    with pytest.raises(IndexingError, match=r"below the path '/search'.*ELASTICSEARCH_URL.*proxy") as caught:
        opened(f"{server.url}/search")
    assert "--rebuild" not in str(caught.value)


def test_a_certificate_is_always_checked() -> None:
    with ElasticServer("fake", IDENTITY, EMBEDDER.dimensions, tls=True) as server:
        for more in ({}, {"fingerprint": "0" * 64}):
            with pytest.raises(IndexingError, match=r"certificate.*ELASTICSEARCH_CA_CERTS"):
                opened(server.url, **more)
        assert not server.requests
        opened(server.url, ca_certs=CERTIFICATE).close()
        opened(server.url, fingerprint=fingerprint()).close()
        assert server.requests


def test_a_server_without_tls_is_told_from_a_wrong_certificate(server: ElasticServer) -> None:
    with pytest.raises(IndexingError, match="speaks no TLS; write http:// in ELASTICSEARCH_URL"):
        opened(server.url.replace("http://", "https://"))


@pytest.mark.parametrize(
    "more",
    [
        {"url": ""},
        {"ca_certs": Path("missing.pem")},
        {"ca_certs": Path(__file__)},
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(more: dict[str, Any]) -> None:
    wanted = ElasticsearchSettings(**{"url": "https://127.0.0.1:1", **more})
    with pytest.raises(ConfigError, match=r"ELASTICSEARCH|elasticsearch"):
        ElasticIndex(wanted, IDENTITY, EMBEDDER.dimensions)


# Searching


def test_a_search_asks_once_with_the_filter_in_each_arm_and_for_no_vectors(
    server: ElasticServer, index: ElasticIndex
) -> None:
    write(index, "docs:a", "zeppelin E-1234")
    server.requests.clear()
    where = replace(MEMBERS, facets={"Plan": "Team"})
    found = rank(index, "zeppelin E-1234", where)
    assert all(ids(found, arm) == ["docs:a#0"] for arm in ARMS)
    assert [path for _, path, _ in server.requests] == ["/_msearch"]
    body = server.requests[0][2]
    searches = [json.loads(line) for line in body.splitlines()[1::2]]
    assert len(searches) == 3
    for search in searches:
        filters = (search.get("knn") or search["query"]["bool"])["filter"]
        assert {"terms": {"readers": ["members"]}} in filters
        assert {"term": {"facets": "plan=team"}} in filters
        assert search["_source"] == ["payload", "version"]
        assert search["timeout"].endswith("ms")


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"status": 400, "error": {"root_cause": [{"type": "x", "reason": "bad"}], "type": "y"}}, "x: bad"),
        (
            {"status": 429, "error": {"type": "circuit_breaking_exception", "reason": "too large"}},
            "too large",
        ),
        ({"timed_out": True, "_shards": {"failed": 0}, "hits": {"hits": []}}, "late"),
        (
            {
                "timed_out": False,
                "_shards": {"total": 2, "failed": 1, "failures": [{"reason": {"reason": "disk gone"}}]},
                "hits": {"hits": []},
            },
            "1 of 2 shards.*disk gone",
        ),
    ],
)
def test_an_arm_that_is_down_is_named_and_the_others_answer(
    server: ElasticServer, index: ElasticIndex, arm: Any, item: dict[str, Any], told: str
) -> None:
    write(index, "docs:a", "zeppelin E-1234")
    server.arms[arm] = item
    found = rank(index, "zeppelin E-1234")
    assert set(found.arms) == set(ARMS) - {arm}
    assert all(ids(found, other) == ["docs:a#0"] for other in found.arms)
    assert set(found.failed) == {arm}
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(found.failed[arm])


@pytest.mark.parametrize("how", ["silent", "trickling"])
def test_a_server_that_hangs_is_left_at_the_deadline(
    server: ElasticServer, index: ElasticIndex, how: Any
) -> None:
    hanging = Reply(200, {}, how=how)
    server.say("/_msearch", hanging)
    found = rank(index, "zeppelin E-1234", seconds=0.3)
    assert found.arms == {}
    assert set(found.failed) == set(ARMS)
    assert all(reason.startswith("late") for reason in found.failed.values())
    # Nor does it wait where there is no code to search for, or nothing was found and the alias is looked at again.
    assert set(rank(index, "zeppelin", seconds=0.3).failed) == {"lexical", "dense"}
    server.replies.clear()
    server.say("/fake", hanging)
    assert set(rank(index, "zeppelin E-1234", seconds=0.3).failed) == set(ARMS)


@pytest.mark.parametrize(
    "reply",
    [error(503, "x", "y"), error(429, "es_rejected_execution_exception", "q"), Reply(how="truncated")],
)
def test_a_moment_s_trouble_is_not_seen_and_a_longer_one_is_told(
    server: ElasticServer, index: ElasticIndex, reply: Reply
) -> None:
    write(index, "docs:a", "zeppelin E-1234")
    server.say("/_msearch", reply, Reply(0))
    assert everywhere(rank(index, "zeppelin E-1234")) == {"docs:a#0"}
    server.say("/_msearch", reply)
    server.requests.clear()
    found = rank(index, "zeppelin E-1234")
    assert set(found.failed) == set(ARMS)
    assert server.asked("/_msearch") == 3


def test_a_key_that_is_withdrawn_is_told_and_not_tried_again(
    server: ElasticServer, index: ElasticIndex
) -> None:
    server.say("/_msearch", error(401, "security_exception", "API key is revoked"))
    server.requests.clear()
    found = rank(index, "zeppelin E-1234")
    assert "API key is revoked" in found.failed["lexical"]
    assert server.asked("/_msearch") == 1


# Writing

BULK = "/fake-write-1/_bulk"


def test_a_busy_server_gets_the_refused_rows_again_and_no_others(
    server: ElasticServer, index: ElasticIndex
) -> None:
    rejected = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}
    done = {"status": 201, "_seq_no": 1, "_primary_term": 1}
    server.say(
        BULK,
        error(503, "unavailable_shards_exception", "primary shard is not active"),
        Reply(200, {"items": [{"create": done}, {"index": rejected}, {"index": {"status": 201}}]}),
        Reply(0),
    )
    with pytest.raises(IndexingError, match="could not be written"):
        # The rows that the reply above says are there are not: the last step must see that.
        write(index, "docs:a", "one", "two")
    again = [body for _, path, body in server.requests if path == BULK][2]
    assert len(again.splitlines()) == 2
    assert json.loads(again.splitlines()[1])["text"] == "Page\none"


@pytest.mark.parametrize(
    "reply",
    [
        error(429, "circuit_breaking_exception", "[request] Data too large"),
        error(429, "es_rejected_execution_exception", "rejected execution of coordinating operation"),
        Reply(413, b"", {"Content-Type": "text/plain"}),
    ],
)
def test_a_request_that_is_too_large_is_halved(
    server: ElasticServer, index: ElasticIndex, reply: Reply
) -> None:
    server.say(BULK, reply, reply, Reply(0))
    write(index, "docs:a", *[f"zeppelin {i}" for i in range(7)])
    assert server.bulks == [2, 2, 4, 1]
    assert len(ids(rank(index, "zeppelin"), "lexical")) == 7


def test_a_row_that_no_request_can_hold_is_a_document_that_is_refused(
    server: ElasticServer, index: ElasticIndex
) -> None:
    carried = server.answer

    def narrow(method: str, path: str, body: str, headers: Message) -> Reply:
        return Reply(413, b"") if len(body) > 20_000 else carried(method, path, body, headers)

    server.answer = narrow
    write(index, "docs:a", "zeppelin")
    with pytest.raises(DocumentRefused, match=r"'docs:a'.*1 of its 3 chunks.*too_large"):
        write(index, "docs:a", "submarine", "x" * 20_000, "airship", revision="2")
    assert index.revisions("docs") == {"docs:a": "1"}
    assert len(server.rows) == 2


@pytest.mark.parametrize(
    "reply",
    [
        error(429, "cluster_block_exception", "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage]"),
        Reply(
            200,
            {
                "items": [
                    {
                        "index": {
                            "status": 429,
                            "error": {"type": "cluster_block_exception", "reason": "disk usage"},
                        }
                    }
                ]
                * 2
            },
        ),
    ],
)
def test_a_full_disk_is_not_tried_again(server: ElasticServer, index: ElasticIndex, reply: Reply) -> None:
    server.say(BULK, reply)
    with pytest.raises(IndexingError, match=r"disk usage.*free some space.*read_only_allow_delete"):
        write(index, "docs:a", "zeppelin")
    assert server.asked(BULK) == 1


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("index [x] blocked by: [FORBIDDEN/5/index read-only (api)];", "index.blocks.read_only,"),
        ("index [x] blocked by: [FORBIDDEN/8/index write (api)];", "index.blocks.write,"),
        ("blocked by: [FORBIDDEN/6/cluster read-only (api)];", "cluster.blocks.read_only,"),
    ],
)
def test_a_block_that_somebody_set_is_not_told_as_a_full_disk(
    server: ElasticServer, index: ElasticIndex, reason: str, said: str
) -> None:
    server.say(BULK, error(403, "cluster_block_exception", reason))
    with pytest.raises(IndexingError, match=f"somebody wanted it so.*remove the block {said}") as caught:
        write(index, "docs:a", "zeppelin")
    assert "disk" not in str(caught.value)


def test_a_lost_answer_is_asked_for_again(server: ElasticServer, index: ElasticIndex) -> None:
    write(index, "docs:a", "old")
    carried = server.answer

    def lose(method: str, path: str, body: str, headers: Message) -> Reply:
        reply = carried(method, path, body, headers)
        return replace(reply, how="truncated") if path == BULK and len(server.bulks) % 2 else reply

    server.answer = lose
    write(index, "docs:a", "zeppelin", "and more", revision="2")
    assert everywhere(rank(index, "zeppelin")) == {"docs:a#0", "docs:a#1"}
    assert index.revisions("docs") == {"docs:a": "2"}
    assert len(server.rows) == 3


def test_a_document_whose_writing_was_cut_off_has_no_revision_and_is_mended_by_the_next_run(
    server: ElasticServer, index: ElasticIndex
) -> None:
    write(index, "docs:a", "old", "and older")
    server.say(BULK, Reply(0), error(401, "security_exception", "API key is revoked"))
    with pytest.raises(IndexingError, match="revoked"):
        write(index, "docs:a", "zeppelin", revision="2")
    assert index.revisions("docs") == {"docs:a": ""}
    assert len(server.rows) == 4
    server.replies.clear()
    write(index, "docs:a", "submarine", revision="3")
    assert index.revisions("docs") == {"docs:a": "3"}
    assert ids(rank(index, "submarine"), "lexical") == ["docs:a#0"]
    assert len(server.rows) == 2
    server.say(BULK, Reply(0), error(401, "security_exception", "API key is revoked"))
    with pytest.raises(IndexingError, match="revoked"):
        write(index, "docs:a", "zeppelin", revision="4")
    server.replies.clear()
    index.delete("docs:a")
    assert not server.rows


def test_two_writers_of_one_document_leave_one_version(server: ElasticServer, index: ElasticIndex) -> None:
    write(index, "docs:a", "old")
    (record,) = [id_ for id_ in server.rows if id_.startswith("document-")]
    carried = server.answer

    def another_in_between(method: str, path: str, body: str, headers: Message) -> Reply:
        reply = carried(method, path, body, headers)
        if method == "GET" and path.endswith(record) and len(server.bulks) == 2:
            server.rows[record]["_seq_no"] += 1000
        return reply

    server.answer = another_in_between
    with pytest.raises(IndexingError, match=r"'docs:a' could not be written.*no other process"):
        write(index, "docs:a", "zeppelin", revision="2")
    assert everywhere(rank(index, "old")) == {"docs:a#0"}
    assert len(server.rows) == 2


# A real node


@pytest.fixture
def real(request: pytest.FixtureRequest) -> Iterator[tuple[ElasticsearchSettings, Elasticsearch]]:
    with cluster(request.config.getoption("--elasticsearch")) as found:
        yield found


@pytest.mark.elasticsearch
def test_a_poison_document_fails_alone_and_leaves_what_was_there(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        for uri in ("docs:a", "docs:b"):
            with pytest.raises(DocumentRefused, match=f"'{uri}'.*1 of its 1 chunks.*immense term"):
                write(index, uri, "submarine", revision="2", facets={"plan": "x" * 40_000})
        with pytest.raises(UnicodeError):
            write(index, "docs:c", "submarine \ud800")
        index.flush()
        assert index.revisions("docs") == {"docs:a": "1"}
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}
        assert client.count(index=settings.prefix)["count"] == 2


@pytest.mark.elasticsearch
def test_replaced_twice_without_a_flush_leaves_the_last_version(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "one", "two", "three")
        chunks = write(index, "docs:other", "zeppelin")
        for text in ("first", "second"):
            chunk = replace(chunks[0], id="docs:a#0", uri="docs:a", text=f"Page\n{text}")
            document = replace(_document(), revision=text)
            index.replace(document, [chunk], EMBEDDER.embed([chunk.text]))
        index.flush()
        assert index.revisions("docs") == {"docs:a": "second", "docs:other": "1"}
        assert client.count(index=settings.prefix)["count"] == 4


@pytest.mark.elasticsearch
def test_nothing_changes_for_readers_before_the_flush(real: Any) -> None:
    settings, _ = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        (chunk,) = write(index, "docs:a", "zeppelin")
        new = replace(chunk, text="Page\nsubmarine")
        index.replace(replace(_document(), revision="2"), [new], EMBEDDER.embed([new.text]))
        index.delete("docs:a")
        time.sleep(1.5)
        assert ids(rank(index, "zeppelin"), "lexical") == ["docs:a#0"]
        index.flush()
        assert everywhere(rank(index, "zeppelin submarine")) == set()


@pytest.mark.elasticsearch
def test_the_mapping_is_strict_and_names_how_vectors_are_kept(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        ((_, about),) = client.indices.get(index=settings.prefix).items()
        mapping = about["mappings"]
        assert mapping["dynamic"] == "strict"
        assert "_source" not in mapping
        vector = mapping["properties"]["vector"]
        assert (vector["similarity"], vector["index_options"]["type"]) == ("cosine", "int8_hnsw")
        found = client.search(index=settings.prefix, query={"exists": {"field": "version"}})
        assert len(found["hits"]["hits"][0]["_source"]["vector"]) == EMBEDDER.dimensions


@pytest.mark.elasticsearch
def test_a_full_disk_is_told_at_once_and_answers_go_on(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        block = "index.blocks.read_only_allow_delete"
        client.indices.put_settings(index=settings.prefix, settings={block: True})
        for change in (lambda: write(index, "docs:b", "x"), lambda: index.delete("docs:a")):
            with pytest.raises(IndexingError, match=r"disk.*read_only_allow_delete"):
                change()
        assert ids(rank(index, "zeppelin"), "lexical") == ["docs:a#0"]
        client.indices.put_settings(index=settings.prefix, settings={block: None})
        write(index, "docs:b", "submarine")
        assert index.revisions("docs") == {"docs:a": "1", "docs:b": "1"}


@pytest.mark.elasticsearch
def test_a_removed_generation_does_not_come_back_by_a_write(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        generation = index.rebuild()
        client.indices.delete(index=f"{settings.prefix}-generation-2")
        with pytest.raises(IndexingError, match="gone"):
            write(generation, "docs:a", "zeppelin")
        assert list(client.indices.get(index=f"{settings.prefix}-generation-*")) == [
            f"{settings.prefix}-generation-1"
        ]
        generation.discard()


@pytest.mark.elasticsearch
def test_a_dead_rebuild_is_taken_over_after_a_minute_and_cannot_publish(real: Any) -> None:
    settings, client = real
    later = lambda: datetime.now(UTC) + timedelta(minutes=2)  # noqa: E731
    with (
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index,
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions, clock=later) as other,
    ):
        write(index, "docs:a", "zeppelin")
        abandoned = index.rebuild()
        write(abandoned, "docs:b", "submarine")
        taken = other.rebuild()
        assert not client.indices.exists(index=f"{settings.prefix}-generation-2")
        with pytest.raises(IndexingError):
            abandoned.publish()
        write(taken, "docs:c", "airship")
        taken.publish()
        assert everywhere(rank(index, "zeppelin submarine airship")) == {"docs:c#0"}


@pytest.mark.elasticsearch
def test_a_generation_that_is_not_whole_is_not_published(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        generation = index.rebuild()
        write(generation, "docs:b", "submarine", "another")
        name = f"{settings.prefix}-generation-2"
        found = client.search(index=name, query={"term": {"id": "docs:b#1"}})
        client.delete(index=name, id=found["hits"]["hits"][0]["_id"])
        with pytest.raises(IndexingError, match="2 chunks, but it holds 1"):
            generation.publish()
        generation.discard()
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}


@pytest.mark.elasticsearch
def test_somebody_else_s_index_of_our_name_is_refused_and_left_alone(real: Any) -> None:
    settings, client = real
    other = f"{settings.prefix}-other"
    client.indices.create(index=other, aliases={settings.prefix: {}})
    with pytest.raises(IndexingError, match=r"not one of ours.*elasticsearch\.prefix"):
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions)
    assert client.indices.exists(index=other)


@pytest.mark.elasticsearch
def test_an_index_named_like_the_prefix_is_told_before_anything_is_made(real: Any) -> None:
    settings, client = real
    settings = settings.model_copy(update={"prefix": f"{settings.prefix}-taken"})
    client.indices.create(index=settings.prefix)
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions, for_rebuild=True) as index:
        with pytest.raises(IndexingError, match=r"another elasticsearch\.prefix, or remove that index"):
            index.rebuild()
        assert index.generations() == ()


@pytest.mark.elasticsearch
def test_a_language_that_the_server_does_not_know_is_named_with_some_that_it_does(real: Any) -> None:
    settings, _ = real
    settings = settings.model_copy(update={"language": "klingon"})
    with (
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index,
        pytest.raises(IndexingError, match=r"elasticsearch\.language = 'klingon'.*light_spanish"),
    ):
        write(index, "docs:a", "zeppelin")


@pytest.mark.elasticsearch
def test_only_our_own_generations_are_ever_removed(real: Any) -> None:
    settings, client = real
    prefix = settings.prefix
    strangers = {
        f"{prefix}-generation-1-backup",
        f"{prefix}-generation-7",
        f"{prefix}-generation-generation-1",
    }
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions, keep=1) as index:
        write(index, "docs:a", "zeppelin")
        client.indices.put_settings(index=prefix, settings={"index.blocks.write": True})
        client.indices.clone(index=f"{prefix}-generation-1", target=f"{prefix}-generation-1-backup")
        client.indices.clone(index=f"{prefix}-generation-1", target=f"{prefix}-generation-8")
        client.indices.put_settings(index=prefix, settings={"index.blocks.write": None})
        client.indices.create(index=f"{prefix}-generation-7")
        client.indices.create(
            index=f"{prefix}-generation-generation-1", aliases={f"{prefix}-previous-previous-1": {}}
        )
        strangers |= {f"{prefix}-generation-8"}
        for _ in range(3):
            generation = index.rebuild()
            write(generation, "docs:b", "submarine")
            generation.publish()
        index.rollback()
        swept = index.sweep()
        assert swept.removed == (f"{prefix}-generation-11",)
        assert set(swept.left) == strangers
        assert strangers <= set(client.indices.get(index=f"{prefix}-*"))
        assert [info.name for info in index.generations()] == [f"{prefix}-generation-10"]


@pytest.mark.elasticsearch
def test_whoever_only_looks_or_asks_leaves_nothing_in_the_cluster(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        assert everywhere(rank(index, "zeppelin")) == set()
        assert index.documents(MEMBERS) == ()
        assert index.generations() == ()
        index.flush()
        index.delete("docs:a")
        assert index.revisions("docs") == {}
        assert not client.indices.get(index=f"{settings.prefix}*")
        write(index, "docs:a", "zeppelin")
        assert everywhere(rank(index, "zeppelin")) == {"docs:a#0"}


@pytest.mark.elasticsearch
def test_a_live_index_that_was_removed_by_hand_is_told_with_the_two_ways_back(real: Any) -> None:
    settings, client = real
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as index:
        write(index, "docs:a", "zeppelin")
        generation = index.rebuild()
        write(generation, "docs:b", "submarine")
        generation.publish()
        client.indices.delete(index=f"{settings.prefix}-generation-2")
        for ask in (lambda: index.revisions("docs"), lambda: write(index, "docs:c", "airship")):
            with pytest.raises(IndexingError, match=r"is gone.*rollback.*--rebuild"):
                ask()
    with pytest.raises(IndexingError, match=r"is gone.*rollback.*--rebuild"):
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions)
    with ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions, for_rebuild=True) as index:
        assert index.rollback().name == f"{settings.prefix}-generation-1"
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}


@pytest.mark.elasticsearch
def test_a_rebuild_that_died_is_cleared_at_once_by_a_run_that_knows_and_told_by_one_that_does_not(
    real: Any,
) -> None:
    settings, _ = real
    with (
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions, lease_seconds=3600) as index,
        ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions) as other,
    ):
        write(index, "docs:a", "zeppelin")
        index.rebuild("the run that died")
        orphan = f"{settings.prefix}-generation-2"
        swept = other.sweep("another bot's run")
        until = datetime.now(UTC) + timedelta(hours=1)
        assert swept.removed == ()
        assert orphan in swept.waiting
        assert f"{until:%Y-%m-%d}" in swept.waiting
        assert other.sweep("our next run", {"the run that died"}).removed == (orphan,)
        other.rebuild("our next run").discard()


def _document() -> Document:
    return Document("docs:a", "docs", "1", "Page", "", "/a")
