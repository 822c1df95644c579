"""The commands that ask: demo, ask, and trace, which tells how an answer came about."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from datetime import time as clock
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from bot.cli.common import Config, err, loading, opened, out, prepare, refuse_empty, settings_for, store_of
from bot.config import load
from bot.sample import demo_settings
from bot.types import Mode, Step
from ingest.errors import TwohopError

if TYPE_CHECKING:
    from bot.app import Asked, Desk

commands = typer.Typer()
TOUR = (
    ("How long after a charge can a customer ask for a refund?", False),
    ("What does error ERR_SSO-4032 mean?", False),
    ("How many tickets are open, by priority?", False),
    ("Is the customer on ticket 4812 entitled to a refund?", False),
    ("what about the one the same shop opened yesterday?", True),
)
"""The demo's questions, and whether each one follows the one before it."""
DEMO_NOW = "2026-09-26T10:00"


@commands.command()
def demo(config: Config = None) -> None:
    """Index the sample company and ask a tour of questions that ends with ticket 4812 and its follow-up."""
    began = time.monotonic()
    out.print(
        "Twohop: a tour on the sample company Albarán (invoicing software); the desk's clock is 26 September 2026."
    )
    loading()
    with opened(demo_settings(load(config)), rebuild=True) as desk:
        prepare(desk)
        now = _now(DEMO_NOW, desk.settings.calendar.zone)
        after = ""
        for i, (text, follows) in enumerate(TOUR, start=1):
            out.print(f"\n{i}. {text}", style="bold", markup=False)
            asked = desk.run(desk.answer(text, now=now, after=after if follows else "", observe=_step))
            _show(asked)
            after = asked.turn.id
            if i == 1:
                out.print(f"  first answer after {time.monotonic() - began:.1f} s", style="dim")
        if sys.stdin.isatty() and sys.stdout.isatty():
            _prompt(desk, now, after)


def _prompt(desk: Desk, now: datetime, after: str) -> None:
    out.print("\nAsk anything; an empty line ends.", style="bold")
    while True:
        try:
            text = out.input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not text:
            return
        try:
            asked = desk.run(desk.answer(text, now=now, after=after, observe=_step))
        except TwohopError as error:
            err.print(f"error: {error}", style="red", markup=False)
            continue
        _show(asked)
        after = asked.turn.id


@commands.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    mode: Annotated[
        Mode,
        typer.Option(help="naive and hybrid are baselines, direct and agent fix the route; for comparison."),
    ] = "gated",
    show_trace: Annotated[bool, typer.Option("--trace", help="Show the steps.")] = False,
    user: Annotated[str, typer.Option("--as", help="Ask with this user's rights.")] = "",
    now: Annotated[str, typer.Option(help="The desk's date or time, ISO.")] = "",
    after: Annotated[str, typer.Option(help="Turn id that this question follows.")] = "",
    config: Config = None,
) -> None:
    """Ask one question; on the sample company when nothing else is configured."""
    settings, is_sample = settings_for(config)
    moment = _now(now, settings.calendar.zone) if now else None
    if not question.strip():
        raise TwohopError("the question is empty; write it in quotes")
    if after:
        with closing(store_of(settings)) as store:
            store.get(after)
    if is_sample:
        err.print(
            "nothing is configured: asking the sample company (twohop index PATH… takes your own folder)",
            style="dim",
        )
    loading()
    with opened(settings, rebuild=is_sample, may_be_away=("index", "tickets")) as desk:
        if is_sample:
            prepare(desk)
        refuse_empty(desk)
        observe: Callable[[Step], None] = _step if show_trace and not as_json else (lambda _: None)
        asked = desk.run(
            desk.answer(question, asker=desk.asker(user), now=moment, after=after, mode=mode, observe=observe)
        )
    if as_json:
        from bot.store import public

        shown = public(asked.answer, asked.turn.id, asked.turn.ms)
        sys.stdout.write(json.dumps(shown, ensure_ascii=False, indent=2, default=str) + "\n")
    else:
        _show(asked)


@commands.command()
def trace(
    turn: Annotated[str, typer.Argument(help="Turn id or its beginning; the latest one without it.")] = "",
    config: Config = None,
) -> None:
    """Print how an answer came about."""
    settings, _ = settings_for(config)
    with closing(store_of(settings)) as store:
        kept = store.get(turn)
    detail = kept.detail
    out.print(
        f"turn {kept.id}  {kept.asked_at:%Y-%m-%d %H:%M} UTC  {kept.user}  mode {kept.mode}  clock {kept.now}",
        markup=False,
    )
    out.print(f"asked     {kept.question}", markup=False)
    if kept.standalone != kept.question:
        out.print(f"searched  {kept.standalone}", markup=False)
    out.print(f"route     {detail['route']['path']}: {'; '.join(detail['route']['reasons'])}", markup=False)
    for step in detail["steps"]:
        arguments = json.dumps(step["arguments"], ensure_ascii=False)
        found = step["error"] or ", ".join(step["found"]) or "nothing"
        out.print(
            f"step      {step['by']}: {step['tool']} {arguments} → {found}  {step['ms']} ms  {step['purpose']}",
            markup=False,
        )
        # Turns that were kept by an earlier version do not tell.
        for arm, reason in step.get("failed", {}).items():
            out.print(f"          no answer from {arm}: {reason}", markup=False)
    for reply in detail["replies"]:
        said = (
            reply["text"] or ", ".join(f"{c['name']} {c['arguments']}" for c in reply["calls"]) or "(nothing)"
        )
        out.print(f"model     {said}", markup=False)
    for reason in detail["rejected"]:
        out.print(f"rejected  {reason}", markup=False)
    if detail["verdict"]:
        out.print(f"verdict   {detail['verdict']['decision']}: {detail['verdict']['text']}", markup=False)
    out.print(f"stop      {detail['stop']}", markup=False)
    out.print(f"usage     {json.dumps(detail['usage'])}  {kept.ms} ms", markup=False)
    out.print(f"answer    {kept.shape}\n{kept.text}", markup=False)
    for c in detail["citations"]:
        out.print(f"  [{c['n']}] {c['source']}: {c['quote']}", markup=False)


def _now(text: str, zone: str) -> datetime:
    """Read a date or a date with a time on the desk's clock; a bare date means noon."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise TwohopError(f"--now {text!r} is no date; write 2026-09-26 or 2026-09-26T10:00") from error
    if len(text) <= 10:
        moment = datetime.combine(moment.date(), clock(12))
    return (
        moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))
    )


def _step(step: Step) -> None:
    found = ", ".join(step.found[:4]) + (" …" if len(step.found) > 4 else "") or step.error or "nothing"
    arguments = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
    why = f"  ({step.purpose})" if step.purpose else ""
    why += f"  (no answer from {', '.join(step.failed)})" if step.failed else ""
    out.print(
        f"  {step.by}: {step.tool}({arguments}) → {found}  {step.ms} ms{why}", style="dim", markup=False
    )


def _show(asked: Asked) -> None:
    answer = asked.answer
    out.print(answer.text, markup=False)
    if answer.citations:
        out.print()
    for c in answer.citations:
        where = f"{c.title}{' > ' + c.section if c.section else ''}"
        out.print(f"  [{c.n}] {where}  ({c.source})", style="cyan", markup=False)
    out.print(
        f"  {answer.shape}; route {answer.route.path}: {'; '.join(answer.route.reasons)}; turn {asked.turn.id}; {asked.turn.ms} ms",
        style="dim",
        markup=False,
    )
