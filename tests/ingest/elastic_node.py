"""A real Elasticsearch node of a test's own, which may be killed, stopped and made to refuse."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from elasticsearch import ApiError, Elasticsearch
from elasticsearch import TransportError as TransportFailed

_START_SECONDS = 300.0


def command_of(config: pytest.Config) -> str:
    """Return the command that starts a node, or skip the test."""
    command: str | None = config.getoption("--elasticsearch-command")
    if not command:
        pytest.skip("breaks an Elasticsearch of its own: run it with --elasticsearch-command COMMAND")
    return command


class Node:
    """One node on one port with one folder for its data; its settings are `name=value`."""

    def __init__(self, command: str, folder: Path, settings: Sequence[str] = ()) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._argv = [*shlex.split(command), str(self.port), str(folder), *settings]
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it answers and has its indices back."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        ends = time.monotonic() + _START_SECONDS
        with Elasticsearch(self.url, max_retries=0, request_timeout=10) as client:
            while True:
                try:
                    if not client.cluster.health(wait_for_status="yellow", timeout="5s")["timed_out"]:
                        return
                except (ApiError, TransportFailed):
                    pass
                if self._process.poll() is not None or time.monotonic() > ends:
                    self.kill()
                    pytest.fail(f"the node did not start: {self._log.read_text('utf-8')[-2000:]}")
                time.sleep(0.5)

    def kill(self) -> None:
        """Kill it as a power cut would; its data stay."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command and to whatever it started."""
        assert self._process
        os.killpg(self._process.pid, number)

    def hang(self) -> None:
        """Make it accept connections and say nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)


def cluster_setting(client: Elasticsearch, **settings: Any) -> None:
    """Set what a running node allows to be changed; dots are written as `__`, None sets it back."""
    client.cluster.put_settings(
        persistent={name.replace("__", "."): value for name, value in settings.items()}
    )
