"""What every test gets: no network beyond this machine, and the options of the long proofs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from bot.app import Desk
from ingest.config import EmbeddingSettings
from ingest.embed import Embedder, embedder_for
from tests import postgres
from tests.desks import prepared, sample_settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also run the long proofs: kill -9, load")
    parser.addoption("--elasticsearch", metavar="URL", help="also use a real Elasticsearch")
    parser.addoption(
        "--elasticsearch-command",
        metavar="COMMAND",
        help="with --soak: starts an Elasticsearch for tests that break one; called as COMMAND PORT FOLDER "
        "[setting=value]…, it keeps its data in FOLDER, answers on 127.0.0.1:PORT and stays in the foreground",
    )
    parser.addoption(
        "--postgres",
        metavar="URL",
        nargs="?",
        const=postgres.THROW_AWAY,
        type=postgres.server_option,
        help="also use a real PostgreSQL: one that Debian's package starts for the tests, or the one at URL",
    )
    parser.addoption("--llm", metavar="URL", help="also ask a real OpenAI-compatible server on this machine")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: a long proof, run only with --soak")
    config.addinivalue_line("markers", "elasticsearch: needs a real node, run only with --elasticsearch URL")
    config.addinivalue_line("markers", "postgres: needs a real PostgreSQL, run only with --postgres")
    config.addinivalue_line("markers", "llm: needs a real language model, run only with --llm URL")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {
        "soak": "a long proof: run it with --soak",
        "elasticsearch": "needs Elasticsearch: run it with --elasticsearch URL of one on this machine; a key is taken from ELASTICSEARCH_API_KEY",
        "postgres": "needs PostgreSQL: run it with --postgres, which starts Debian's, or --postgres=URL of one whose user may create databases",
        "llm": "needs a real language model: run it with --llm URL, as tests/bot/test_llm.py tells",
    }
    for marker, reason in reasons.items():
        if not config.getoption(f"--{marker}"):
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _local(address[0]):
                raise AssertionError(f"a test may not reach {address!r}; use a server on 127.0.0.1")
            return original(self, address)

        return connect

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guarded(name))


def _local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """Return the bundled model, loaded once a process."""
    return embedder_for(EmbeddingSettings())


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    """Return a desk over the sample company, indexed once a process; tests only ask it."""
    desk = prepared(sample_settings(tmp_path_factory.mktemp("sample")), embedder)
    yield desk
    desk.close()


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a PostgreSQL whose user may create databases; each worker process starts one of its own."""
    given = request.config.getoption("--postgres")
    if given != postgres.THROW_AWAY:
        yield given
        return
    server = postgres.Server()
    yield server.url
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Return the URL of a new, empty database on a real PostgreSQL; whoever asks for it is marked `postgres`."""
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a new, empty database, on each kind of server that the bot's own state may be on."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'database.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url
