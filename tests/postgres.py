"""A real PostgreSQL for the tests: a throw-away server of Debian's package or an existing one, and databases on it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

THROW_AWAY = "throw-away"
"""What `--postgres` means without a URL."""


def server_option(value: str) -> str:
    """Return the value of `--postgres`; what follows it by mistake, a test's path for example, is refused."""
    if value != THROW_AWAY and "://" not in value:
        raise ArgumentTypeError(f"{value!r} is no URL; write --postgres at the end, or --postgres=URL")
    return value


class Server:
    """A PostgreSQL of our own in a temporary folder, reached by a socket there; it can be stopped and started again."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._folder = Path(tempfile.mkdtemp(prefix="twohop-postgres-"))
        # PostgreSQL refuses to run as root.
        self._user = _somebody() if os.getuid() == 0 else None
        if self._user:
            shutil.chown(self._folder, self._user)
        self._run(
            "initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        with (self._folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self._folder}'\nfsync = off\nmax_connections = 200\n"
            )
        self.start()

    @property
    def url(self) -> str:
        """The address of the database that every server has."""
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "start", "--wait", "--timeout=120", f"--log={self._folder / 'log'}")

    def stop(self) -> None:
        """Cut all connections and stop the server."""
        self._run("pg_ctl", "stop", "--wait", "--mode=fast")

    def remove(self) -> None:
        """Stop the server and leave nothing of it."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        # A file and no pipe, which the server that pg_ctl leaves running would keep open.
        with (self._folder / "out").open("w+", encoding="utf-8") as out:
            done = subprocess.run(
                [self._programs / program, *arguments, "--pgdata", self._folder / "data"],
                cwd="/",
                user=self._user,
                group=pwd.getpwnam(self._user).pw_gid if self._user else None,
                extra_groups=[] if self._user else None,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            out.seek(0)
            if done.returncode:
                raise RuntimeError(f"{program} failed: {out.read()}")


def _programs() -> Path:
    """Return the folder of the server's programs; Debian keeps them off the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))
    if not installed:
        raise pytest.UsageError(
            "--postgres finds no initdb: install Debian's `postgresql`, or name a server: --postgres URL"
        )
    return installed[-1].parent


def _somebody() -> str:
    return next(name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()})


@contextmanager
def database(server: str) -> Iterator[str]:
    """Make a new database on a server and yield its URL; it is dropped at the end, whoever is still connected."""
    name = f"twohop_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
