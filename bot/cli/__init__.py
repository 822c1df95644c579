"""The command line: demo, ask, serve, playground, index, tickets, eval, trace, doctor, bench."""

from __future__ import annotations

import sys
import tempfile
import traceback
import uuid
from pathlib import Path
from typing import Annotated

import typer
from pydantic_settings import SettingsError

from bot.bench.command import bench_app
from bot.cli import asking, doctor, serving
from bot.cli.common import err, version
from bot.cli.index import index_app, tickets_app
from ingest.errors import TwohopError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A support desk that reads twice.",
)
app.add_typer(asking.commands)
app.add_typer(serving.commands)
app.add_typer(doctor.commands)
app.add_typer(index_app, name="index")
app.add_typer(tickets_app, name="tickets")
app.add_typer(bench_app, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"twohop {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; an error that a person can mend is one line, without a traceback."""
    try:
        app()
    except TwohopError as error:
        err.print(f"error: {error}", style="red", markup=False)
        sys.exit(2)
    except (OSError, SettingsError) as error:
        err.print(
            f"error: {' '.join(str(error).split())[:400]}; check the data folder and the settings",
            style="red",
            markup=False,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _refuse_database_error(error)
        # A bug: its traceback is kept for whoever mends it, and the asker gets a reference.
        reference = uuid.uuid4().hex[:8]
        log = Path(tempfile.gettempdir()) / f"twohop-{reference}.log"
        log.write_text(traceback.format_exc(), encoding="utf-8")
        err.print(
            f"error: something is wrong in Twohop itself; reference {reference}, details in {log}",
            style="red",
            markup=False,
        )
        sys.exit(3)


def _refuse_database_error(error: Exception) -> None:
    """End with one line where the database of our own state fails; return where something else does."""
    # Loaded for this only, or by whatever raised it: it takes longer than the whole of `--help`.
    from sqlalchemy.exc import SQLAlchemyError

    from ingest.database import words

    if isinstance(error, SQLAlchemyError):
        # Only our own state fails so; what a ticket database does is said in words.
        err.print(
            f"error: the state database fails: {words(error)[:400]}; `twohop doctor` names the next step",
            style="red",
            markup=False,
        )
        sys.exit(2)
