"""The README tells the truth: its commands, its settings, its words about the sample."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from typer.testing import CliRunner

from bot.cli import app
from bot.config import table
from bot.sample import sample

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_exactly_two_commands_set_up_and_do_everything() -> None:
    commands = re.findall(r"^python3 -m venv .+$", README, re.MULTILINE)
    prefix = "python3 -m venv .venv && . .venv/bin/activate && "
    assert commands == [
        f"{prefix}pip install -e . && twohop demo",
        f'{prefix}pip install -e ".[test]" && pytest',
    ]


def test_the_settings_table_is_the_settings() -> None:
    shown = README.partition("<!-- settings -->")[2].partition("<!-- /settings -->")[0].strip()
    assert shown == table().strip()


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"`twohop ([a-z]+)(?: ([a-z]+))?", README))
    assert {("index", ""), ("ask", ""), ("tickets", "import"), ("doctor", ""), ("trace", "")} <= named
    for command, sub in named:
        wanted = [command, sub, "--help"] if command == "tickets" and sub else [command, "--help"]
        assert CliRunner().invoke(app, wanted).exit_code == 0, wanted


def test_the_options_of_ask_exist() -> None:
    help_text = CliRunner().invoke(app, ["ask", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    for option in re.findall(r"`(--[a-z-]+)", README.partition("`twohop ask")[2].partition("|\n")[0]):
        assert option in help_text


def test_the_sample_is_as_large_as_it_says() -> None:
    said = re.search(r"(\d+) documents, (\d+) tickets", README)
    assert said is not None
    documents, tickets = said.groups()
    assert len(list((sample() / "docs").rglob("*.md"))) == int(documents)
    with (sample() / "tickets.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == int(tickets)
