"""The command that measures: eval."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from bot.cli.common import Config, err, loading, opened, out, prepare, refuse_empty, settings_for
from bot.sample import sample
from bot.types import Mode
from ingest.errors import ConfigError, TwohopError

if TYPE_CHECKING:
    from bot.app import Desk
    from bot.evaluate.labels import QuestionSet, Target
    from bot.evaluate.record import Asked, Run
    from bot.evaluate.tables import Table
    from ingest.embed import Embedder

commands = typer.Typer()


@commands.command("eval")
def evaluate(
    targets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DESK_OR_FILE]…",
            help="Desks, question sets, public sets, rule sentences; the sample's questions without any.",
        ),
    ] = None,
    modes: Annotated[
        str, typer.Option(help=f"Modes to compare, separated by commas: {', '.join(get_args(Mode))}.")
    ] = "gated",
    failures: Annotated[
        bool, typer.Option("--failures", help="List what was not right; the sample's blind half stays blind.")
    ] = False,
    skip_needs: Annotated[
        str, typer.Option(help="Leave out questions that need one of these, such as `office`.")
    ] = "",
    only: Annotated[str, typer.Option(help="Ask only the questions with these ids.")] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Search only the first so many queries of a public set.")
    ] = None,
    distractors: Annotated[
        Path | None, typer.Option(help="Folder whose corpus.jsonl joins the documents of a public set.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write one JSON object to this file, or to - .")
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page with plots to this file.")] = None,
    compared: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="BEFORE AFTER", help="Compare two files that --json wrote."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the intervals' random numbers.")] = 0,
    config: Config = None,
) -> None:
    """Measure answers to labelled questions, searches of public sets, and rules found in labelled sentences."""
    from bot.evaluate import compare, figures, record
    from bot.evaluate.tables import tables

    if compared:
        before, after = map(record.from_json, compared)
        return _print(compare.compare(before, after))
    wanted = tuple(_listed(modes))
    for mode in wanted:
        if mode not in get_args(Mode):
            raise TwohopError(f"--modes {mode!r}: the modes are {', '.join(get_args(Mode))}")
    run = _measure(
        _chosen(targets, set(_listed(only)), set(_listed(skip_needs)), distractors, config),
        cast(tuple[Mode, ...], wanted),
        limit,
        seed,
        config,
    )
    if as_json == Path("-"):
        sys.stdout.write(record.to_json(run, figures.everything(run)) + "\n")
    else:
        _print(tables(run))
        if failures:
            _print_failures(run)
    if as_json and as_json != Path("-"):
        as_json.write_text(record.to_json(run, figures.everything(run)) + "\n", encoding="utf-8")
    if page:
        from bot.evaluate.page import render

        page.write_text(render(run), encoding="utf-8")
        err.print(f"wrote {page}", style="dim", markup=False)
    return None


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _chosen(
    paths: Sequence[Path] | None,
    only: set[str],
    skip_needs: set[str],
    distractors: Path | None,
    config: Path | None,
) -> list[Target]:
    """Read everything that is to be measured, before anything is loaded; raises ConfigError."""
    from dataclasses import replace

    from bot.evaluate import labels, public

    if not paths:
        if not settings_for(config)[1]:
            raise TwohopError(
                "name what to measure (twohop eval DESK_OR_FILE…); the sample's own questions are asked only where "
                "nothing is configured or indexed"
            )
        files = sorted(sample().glob("questions*.jsonl"))
        targets: list[Target] = [
            labels.QuestionSet(
                file.name, labels.lines(file, labels.Labelled), blind=file.stem.endswith("-test")
            )
            for file in files
        ]
    else:
        targets = [labels.read(path) for path in paths]
    names = [target.name for target in targets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two of what is to be measured are called {twice!r}; rename one")
    found: list[Target] = []
    for target in targets:
        if isinstance(target, labels.QuestionSet):
            kept = labels.chosen(target.questions, only=only, skip_needs=skip_needs)
            found += [replace(target, questions=kept)] if kept else []
        elif isinstance(target, labels.PublicSet) and distractors:
            found.append(public.with_distractors(target, labels.papers(distractors)))
        else:
            found.append(target)
    if not found:
        raise ConfigError(
            f"--only {', '.join(sorted(only))!r} and --skip-needs {', '.join(sorted(skip_needs))!r} leave no question; "
            f"use ids of {', '.join(names)}"
        )
    return found


def _measure(
    targets: Sequence[Target], modes: tuple[Mode, ...], limit: int | None, seed: int, config: Path | None
) -> Run:
    from bot.evaluate import labels, public, record, rules
    from bot.evaluate.run import desk_of

    asked: list[Asked] = []
    searched: list[record.Searched] = []
    sentences: list[record.Sentence] = []
    settings, is_sample = settings_for(config)
    embedder: Embedder | None = None
    configured = [t for t in targets if isinstance(t, labels.QuestionSet) and t.desk is None]
    if any(not isinstance(target, labels.RuleSet) for target in targets):
        loading()
    if configured:
        if is_sample:
            err.print("nothing is configured or indexed here: measuring the sample company", style="dim")
        with opened(settings, rebuild=is_sample) as desk:
            embedder = desk.embedder
            if is_sample:
                prepare(desk)
            refuse_empty(desk)
            for questions in configured:
                asked += _ask(desk, questions, modes)
    for target in targets:
        if isinstance(target, labels.PublicSet):
            err.print(f"indexing {len(target.papers)} documents of {target.name}", style="dim", markup=False)
            searched += public.search(target, settings, limit, embedder)
        elif isinstance(target, labels.RuleSet):
            sentences += rules.find(target)
        elif target.desk:
            with desk_of(target.desk, embedder) as desk:
                embedder = desk.embedder
                prepare(desk)
                refuse_empty(desk)
                asked += _ask(desk, target, modes)
    return record.Run(seed, tuple(asked), tuple(searched), tuple(sentences))


def _ask(desk: Desk, target: QuestionSet, modes: tuple[Mode, ...]) -> tuple[Asked, ...]:
    from bot.evaluate.record import hidden
    from bot.evaluate.run import ask

    err.print(f"asking {len(target.questions)} questions of {target.name}", style="dim", markup=False)
    records = desk.run(ask(desk, target.name, target.questions, modes))
    return tuple(map(hidden, records)) if target.blind else records


def _print(found: Sequence[Table]) -> None:
    from bot.evaluate.tables import markdown

    for table in found:
        out.print(markdown(table) + "\n", markup=False)


def _print_failures(run: Run) -> None:
    from bot.evaluate.figures import failed

    for record in failed(run.asked):
        out.print(
            f"- {record.set} {record.id} ({record.type}, mode {record.mode}) {record.outcome}: {record.question}\n"
            f"  {record.why or 'no verdict'}; route {record.route}, expected {record.expected_route}\n"
            f"  says {record.answer[:400]!r}",
            markup=False,
        )
