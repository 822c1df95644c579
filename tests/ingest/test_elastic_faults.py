"""Faults of a real Elasticsearch: refusals for want of memory or threads, hangs, a full disk, a death in mid-rebuild."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from ingest.config import ElasticsearchSettings
from ingest.errors import IndexingError
from ingest.index.elastic import ElasticIndex
from ingest.types import Document
from tests.indexes import ARMS, EMBEDDER, IDENTITY, cluster, everywhere, ids, rank, write
from tests.ingest.elastic_node import Node, cluster_setting, command_of

pytestmark = pytest.mark.soak

Cluster = tuple[ElasticsearchSettings, Elasticsearch]


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    command = command_of(request.config)
    with Node(command, tmp_path_factory.mktemp("node") / "data") as node:
        yield node


@pytest.fixture
def own(node: Node) -> Iterator[Cluster]:
    with cluster(node.url) as found:
        yield found


def opened(settings: ElasticsearchSettings) -> ElasticIndex:
    return ElasticIndex(settings, IDENTITY, EMBEDDER.dimensions)


def texts(count: int, word: str = "zeppelin") -> list[str]:
    return [f"{word} number {i} " + f"departs from platform {i} " * 20 for i in range(count)]


def whole(index: ElasticIndex, client: Elasticsearch, name: str, documents: dict[str, int]) -> None:
    """Check that exactly these documents are there, each with its chunks."""
    assert set(index.revisions("docs")) == set(documents)
    assert all(index.revisions("docs").values())
    assert client.count(index=name)["count"] == len(documents) + sum(documents.values())


def within(condition: Callable[[], Any]) -> None:
    """Wait for a condition; the limit is for one that never comes."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.25)
    pytest.fail("what was waited for did not come")


def test_requests_that_the_node_has_no_memory_for_are_halved_until_it_has(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    command = command_of(request.config)
    with (
        Node(command, tmp_path / "data", ["indexing_pressure.memory.limit=20kb"]) as small,
        cluster(small.url) as (settings, client),
        opened(settings) as index,
    ):
        write(index, "docs:a", *texts(40))
        whole(index, client, settings.prefix, {"docs:a": 40})
        assert len(ids(rank(index, "zeppelin", k=100), "lexical")) == 40
        (stats,) = client.nodes.stats(metric="indexing_pressure")["nodes"].values()
        assert stats["indexing_pressure"]["memory"]["total"]["coordinating_rejections"] > 0


def test_rows_that_a_full_queue_refuses_are_written_all_the_same(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    command = command_of(request.config)
    narrow = ["thread_pool.write.queue_size=1", "node.processors=1"]
    with ExitStack() as stack:
        small = stack.enter_context(Node(command, tmp_path / "data", narrow))
        settings, client = stack.enter_context(cluster(small.url))
        writers = [stack.enter_context(opened(settings)) for _ in range(12)]

        def refused() -> int:
            (stats,) = client.nodes.stats(metric="thread_pool")["nodes"].values()
            return int(stats["thread_pool"]["write"]["rejected"])

        def add(writer: ElasticIndex, uri: str) -> None:
            write(writer, uri, *texts(30))

        documents: dict[str, int] = {}
        while not refused():
            assert len(documents) < 2000, "twelve writers never filled a queue of one"
            names = [f"docs:{len(documents) + i}" for i in range(len(writers))]
            with ThreadPoolExecutor(len(writers)) as pool:
                list(pool.map(add, writers, names))
            documents |= dict.fromkeys(names, 30)
        whole(writers[0], client, settings.prefix, documents)


def test_a_bulk_that_trips_the_breaker_is_halved(own: Cluster) -> None:
    settings, client = own
    with opened(settings) as index:
        # A bulk that is read as it arrives, as 9 does, is never held whole.
        cluster_setting(client, rest__incremental_bulk=False)
        cluster_setting(client, network__breaker__inflight_requests__limit="40kb")
        try:
            write(index, "docs:a", *texts(60))
            (stats,) = client.nodes.stats(metric="breaker")["nodes"].values()
        finally:
            cluster_setting(client, network__breaker__inflight_requests__limit=None)
            cluster_setting(client, rest__incremental_bulk=None)
        assert stats["breakers"]["inflight_requests"]["tripped"] > 0
        whole(index, client, settings.prefix, {"docs:a": 60})


def test_a_search_that_trips_the_breaker_is_told_and_the_next_one_answers(own: Cluster) -> None:
    settings, client = own
    with opened(settings) as index:
        write(index, "docs:a", "zeppelin E-1234")
        cluster_setting(client, network__breaker__inflight_requests__limit="2kb")
        try:
            found = rank(index, "zeppelin E-1234")
        finally:
            cluster_setting(client, network__breaker__inflight_requests__limit=None)
        assert found.arms == {}
        assert set(found.failed) == set(ARMS)
        assert all("Data too large" in why for why in found.failed.values())
        assert everywhere(rank(index, "zeppelin E-1234")) == {"docs:a#0"}


def test_a_node_that_hangs_is_left_at_the_deadline_and_answers_when_it_goes_on(
    node: Node, own: Cluster
) -> None:
    settings, _ = own
    with opened(settings) as index:
        write(index, "docs:a", "zeppelin E-1234")
        node.hang()
        try:
            found = rank(index, "zeppelin E-1234", seconds=1)
        finally:
            node.resume()
        assert found.arms == {}
        assert set(found.failed) == set(ARMS)
        assert all(why.startswith("late") for why in found.failed.values())
        assert everywhere(rank(index, "zeppelin E-1234")) == {"docs:a#0"}


def test_a_node_that_hangs_longer_than_a_request_may_take_gets_each_row_once(
    node: Node, own: Cluster
) -> None:
    settings, client = own
    with opened(settings) as index:
        chunks = write(index, "docs:a", "zeppelin", "and older")
        node.hang()
        later = threading.Timer(35, node.resume)
        later.start()
        try:
            new = [replace(chunk, text=f"Page\nsubmarine {chunk.position}") for chunk in chunks]
            index.replace(
                Document("docs:a", "docs", "2", "Page", "", "/a"),
                new,
                EMBEDDER.embed([chunk.text for chunk in new]),
            )
        finally:
            later.join()
        index.flush()
        assert index.revisions("docs") == {"docs:a": "2"}
        whole(index, client, settings.prefix, {"docs:a": 2})
        assert ids(rank(index, "submarine"), "lexical") == ["docs:a#0", "docs:a#1"]


def test_a_disk_at_the_flood_stage_is_told_and_writing_goes_on_when_there_is_room(own: Cluster) -> None:
    settings, client = own
    marks = "cluster__routing__allocation__disk__watermark__{}"
    names = [marks.format(name) for name in ("low", "high", "flood_stage")]
    with opened(settings) as index:
        write(index, "docs:a", "zeppelin")

        def blocked() -> bool:
            found = client.indices.get_settings(index=settings.prefix).body
            return any("read_only_allow_delete" in str(about) for about in found.values())

        looked_at = {
            "cluster__routing__allocation__disk__threshold_enabled": True,
            "cluster__info__update__interval": "10s",
        }
        # What has to be free is more than any disk has.
        full = {name: f"{i}b" for name, i in zip(names, (10**15, 10**15 - 1, 10**15 - 2), strict=True)}
        cluster_setting(client, **full, **looked_at)
        try:
            within(blocked)
            with pytest.raises(IndexingError, match=r"disk.*read_only_allow_delete"):
                write(index, "docs:b", "submarine")
            assert everywhere(rank(index, "zeppelin")) == {"docs:a#0"}
        finally:
            cluster_setting(client, **dict.fromkeys(names, "1b"))
            within(lambda: not blocked())
            cluster_setting(client, **dict.fromkeys([*names, *looked_at]))
        write(index, "docs:b", "submarine")
        whole(index, client, settings.prefix, {"docs:a": 1, "docs:b": 1})


def test_a_node_that_dies_in_a_rebuild_and_comes_back_has_lost_nothing(node: Node, own: Cluster) -> None:
    settings, client = own
    with opened(settings) as index:
        write(index, "docs:old", "zeppelin")
        generation = index.rebuild()
        died = threading.Event()

        def die() -> None:
            died.wait()
            node.kill()
            node.start()

        death = threading.Thread(target=die)
        death.start()
        for i in range(60):
            if i == 20:
                died.set()
            document = (f"docs:{i}", f"submarine number{i}", "and more")
            try:
                write(generation, *document)
            except IndexingError:
                # It took the node longer to come back than a run is patient.
                death.join()
                write(generation, *document)
        death.join()
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:old#0"}
        generation.publish()
        whole(index, client, settings.prefix, {f"docs:{i}": 2 for i in range(60)})
        assert len(index.generations()) == 2
        assert index.sweep().removed == ()
