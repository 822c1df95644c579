"""Turns, the inbox, index runs and alarms, as versions without migrations made them, whose databases go on from here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String(), nullable=False) for name in names]


def upgrade() -> None:
    """Create what is not there; what is there keeps its rows."""
    op.create_table(
        "turn",
        sa.Column("id", sa.String(), primary_key=True),
        *_texts("after"),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        *_texts("user", "mode", "now"),
        sa.Column("question", sa.Text()),
        sa.Column("standalone", sa.Text()),
        *_texts("shape"),
        sa.Column("text", sa.Text()),
        *(sa.Column(name, sa.JSON()) for name in ("detail", "readers", "tickets", "customers")),
        sa.Column("ms", sa.Integer(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "inbox",
        sa.Column("id", sa.String(), primary_key=True),
        *_texts("event_id", "team", "channel", "channel_type", "user"),
        sa.Column("text", sa.Text(), nullable=False),
        *_texts("ts", "thread_root"),
        sa.Column("files", sa.Integer(), nullable=False),
        *_texts("refusal"),
        sa.Column("received_at", sa.Float(), nullable=False),
        *_texts("state", "owner"),
        sa.Column("due", sa.Float(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("claims", "tries", "posts")),
        *_texts("turn"),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        *_texts("error"),
        sa.UniqueConstraint("team", "channel", "ts"),
        sa.UniqueConstraint("event_id"),
        if_not_exists=True,
    )
    op.create_index("inbox_open", "inbox", ["state", "due"], if_not_exists=True)
    op.create_index("inbox_thread", "inbox", ["team", "channel", "thread_root"], if_not_exists=True)
    under_way = sa.text("state IN ('working', 'sending')")
    op.create_index(
        "inbox_one_at_a_time",
        "inbox",
        ["team", "channel", "thread_root"],
        unique=True,
        sqlite_where=under_way,
        postgresql_where=under_way,
        if_not_exists=True,
    )
    op.create_table(
        "run",
        sa.Column("id", sa.String(), primary_key=True),
        *_texts("kind"),
        sa.Column("sources", sa.JSON(), nullable=False),
        *_texts("who", "why"),
        sa.Column("slot", sa.String(), unique=True),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float()),
        *_texts("state", "owner"),
        sa.Column("due", sa.Float(), nullable=False),
        *_texts("stage"),
        sa.Column("done", sa.Integer(), nullable=False),
        *_texts("uri", "cancelled_by"),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_run_started_at", "run", ["started_at"], if_not_exists=True)
    running = sa.text("state = 'running'")
    op.create_index(
        "run_one_at_a_time",
        "run",
        ["state"],
        unique=True,
        sqlite_where=running,
        postgresql_where=running,
        if_not_exists=True,
    )
    op.create_table(
        "alarm",
        sa.Column("source", sa.String(), primary_key=True),
        sa.Column("since", sa.Float(), nullable=False),
        if_not_exists=True,
    )
