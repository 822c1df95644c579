"""`twohop doctor`: the effective settings, what works, what does not, and the next step."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import typer

from bot.cli.common import Config, embedded, loading, out, settings_for, store_of, version
from bot.config import SECRETS, Settings, unused
from ingest.errors import ConfigError, TwohopError
from ingest.types import MEMBERS, Where

commands = typer.Typer()


@commands.command()
def doctor(config: Config = None) -> None:
    """Print the effective settings, what works, what does not, and the next step."""
    settings, is_sample = settings_for(config)
    out.print(f"twohop {version()} on Python {sys.version.split()[0]}", style="bold")
    if is_sample:
        out.print("no settings, sources or index here: these are the sample company's settings")
    for name, value in settings.model_dump(mode="json").items():
        shown = "********" if name in SECRETS and value else json.dumps(value, ensure_ascii=False)
        # A password may also stand in an address.
        shown = re.sub(r"(://[^:/@\s\"]*:)[^\s\"]+@", r"\1********@", shown)
        shown = re.sub(r"(password=)[^&\s\"]+", r"\1********", shown)
        out.print(f"  {name} = {shown}", markup=False)
    for line in unused(settings):
        out.print(f"note: {line}", markup=False)
    loading()
    failed = False
    for name, probe in probes(settings):
        try:
            out.print(f"ok    {name}: {probe()}", style="green", markup=False)
        except TwohopError as error:
            failed = True
            out.print(f"FAIL  {name}: {error}", style="red", markup=False)
    if failed:
        raise typer.Exit(1)


def probes(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is looked at: its name, and what looks at it and returns how it is; raises TwohopError otherwise."""
    from ingest.embed import embedder_for

    embedder = embedder_for(settings.embedding)

    def model() -> str:
        vector = embedder.embed(["a probe"], kind="query")
        return f"{embedder.name}, {vector.shape[1]} dimensions, reads {embedder.max_tokens} tokens"

    def documents() -> str:
        if settings.index == "sqlite" and not embedded(settings).is_file():
            raise TwohopError("nothing is indexed yet; run `twohop demo` or `twohop index PATH…`")
        from bot.app import indexed_roots, search_index

        labels = {MEMBERS, "support", *settings.access.groups, *settings.tickets.readers}
        with closing(search_index(settings, embedder)) as index:
            held = index.documents(Where(readers=frozenset(labels)))
        newest = max((d.indexed_at for d in held), default=None)
        if not newest:
            raise TwohopError(
                "it holds no document; run `twohop index PATH…`, or `twohop index` for sources.paths"
            )
        folders = ", ".join(f"{root.path} as {root.name}" for root in indexed_roots(settings))
        return (
            f"{len(held)} documents, {sum(d.chunks for d in held)} chunks, last indexed {newest:%Y-%m-%d %H:%M}, "
            f"from {folders}"
        )

    def state_database() -> str:
        file = settings.data / "state.db"
        if not (settings.database_url or file.is_file()):
            return f"{str(file)!r}, which is made when it is first needed"
        with closing(store_of(settings)) as store:
            return f"{store.place}; it can be written"

    def ticket_table() -> str:
        from bot.app import ticket_store

        if missing := [str(path) for path in settings.tickets.csv if not path.is_file()]:
            raise TwohopError(
                f"[tickets] csv names {', '.join(map(repr, missing))}, which is no file; mend the path"
            )
        with closing(ticket_store(settings)) as store:
            if problems := store.problems():
                raise TwohopError("; ".join(problems))
            warnings = "".join(f"; warning: {line}" for line in store.warnings())
            return (
                f"{store.place}; {len(store.customers())} customers; {'; '.join(store.describe())}{warnings}"
            )

    def elasticsearch() -> str:
        from ingest.index.elastic.wire import Wire

        wire = Wire(settings.elasticsearch)
        try:
            return f"{wire.url}, version {wire.check()}"
        finally:
            wire.close()

    def schedule() -> str:
        from bot.app import source_names
        from bot.plans import check_plans

        plans = check_plans(settings.sync, source_names(settings), ZoneInfo(settings.calendar.zone))
        if not plans:
            return "none, runs are started by hand"
        from ingest.schedule import EVERYTHING

        named = ((plan, "every other source" if plan.name == EVERYTHING else plan.name) for plan in plans)
        return "; ".join(f"{name}: {plan.when}" for plan, name in named)

    def golden_questions(file: Path) -> str:
        from bot import golden
        from bot.app import search_index

        questions = golden.read(file)
        if settings.index == "sqlite" and not embedded(settings).is_file():
            return f"{len(questions)}; nothing is indexed yet to look for their documents"
        with closing(search_index(settings, embedder)) as index:
            golden.refuse_unknown(questions, index.revisions)
        return f"{len(questions)}, all of their documents are indexed"

    yield "schedule", schedule
    yield "state database", state_database
    if settings.sync.golden:
        yield "golden questions", partial(golden_questions, settings.sync.golden)
    yield "embedding model", model
    if settings.index == "elastic":
        yield "Elasticsearch", elasticsearch
    if settings.model:
        yield from _model_probes(settings)
    yield "index", documents
    yield "tickets", ticket_table


def _model_probes(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    from bot.app import chat_model
    from bot.chat.probe import PROBES, NoServer, Probe

    gone = False

    def ran(probe: Probe) -> str:
        nonlocal gone

        async def once() -> str:
            model = chat_model(settings)
            try:
                return await probe(model) if model else ""
            finally:
                if model:
                    await model.close()

        try:
            return asyncio.run(once())
        except (NoServer, ConfigError):
            gone = True
            raise

    for name, probe in PROBES:
        if not gone:
            yield f"language model, {name}", partial(ran, probe)
