"""How Alembic reaches our own state: on the connection it is given, or at DATABASE_URL when a developer calls it."""

from __future__ import annotations

import os
from contextlib import ExitStack

from alembic import context

from bot.store.state import STATE, VERSION_TABLE, engine_of

with ExitStack() as held:
    connection = context.config.attributes.get("connection")
    if connection is None:
        connection = held.enter_context(engine_of(os.environ["DATABASE_URL"]).connect())
    context.configure(
        connection=connection,
        target_metadata=STATE,
        version_table=VERSION_TABLE,
        # SQLite changes a column by making the table anew.
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()
