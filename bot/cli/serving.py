"""The commands that answer in Slack, a real one or a local one."""

from __future__ import annotations

import gc
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast
from zoneinfo import ZoneInfo

import typer

from bot import logs
from bot.cli.common import Config, err, loading, opened, prepare, settings_for
from bot.config import Settings, secret_values

if TYPE_CHECKING:
    from bot.app import Desk

commands = typer.Typer()


@commands.command()
def serve(config: Config = None) -> None:
    """Answer in Slack: mentions in channels, direct messages, and /twohop; on the sample company when nothing else is configured."""
    from bot.slack.app import check_tokens
    from bot.slack.app import serve as answer_in_slack

    settings, is_sample = settings_for(config)
    check_tokens(settings)
    with _serving(settings, is_sample, config) as (desk, reindex):
        desk.run(answer_in_slack(desk, reindex=reindex, say=_say))


@commands.command()
def playground(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of 127.0.0.1.")] = 8124,
    config: Config = None,
) -> None:
    """Open a local Slack in the browser, with the bot in it: no workspace, no tokens."""
    from bot.playground.whole import joined, run

    settings, is_sample = settings_for(config)
    with _serving(joined(settings, port), is_sample, config) as (desk, reindex):
        desk.run(run(desk, port, reindex=reindex, say=_say))


def _say(line: str) -> None:
    err.print(line, markup=False)


def _check(settings: Settings) -> None:
    """Raise ConfigError where a later index run could not go as the settings say, before anything is loaded."""
    from bot import golden
    from bot.app import source_names
    from bot.plans import check_plans

    check_plans(settings.sync, source_names(settings), ZoneInfo(settings.calendar.zone))
    if settings.sync.golden:
        golden.read(settings.sync.golden)


@contextmanager
def _serving(
    settings: Settings, is_sample: bool, config: Path | None
) -> Iterator[tuple[Desk, Sequence[str]]]:
    """Open the desk for a long run, with a log, and with the command of its index runs."""
    # As the first process of a container nothing would end it before it answers.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    logs.set_up(settings.log, secret_values(settings))
    if settings.log == "json":
        err.file = cast("IO[str]", logs.Lines(logging.getLogger("bot")))
    reindex: list[str] = []
    if is_sample:
        err.print("nothing is configured: answering from the sample company", style="dim")
    else:
        reindex = [sys.executable, "-m", "bot.cli", "index", "--json"]
        reindex += ["--config", str(config.absolute())] if config else []
    _check(settings)
    loading()
    with opened(settings, rebuild=is_sample) as desk:
        if is_sample:
            prepare(desk)
        yield desk, reindex
    # Everything is closed. Python would now walk PyTorch's objects for seconds, and whoever stops a container waits ten.
    gc.freeze()
