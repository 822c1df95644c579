"""What every test gets: no network beyond this machine, and the options of the long proofs."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also run the long proofs: kill -9, load")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: a long proof, run only with --soak")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="a long proof: run it with --soak"))


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
