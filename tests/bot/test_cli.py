"""The command line: its JSON, its exit codes, and errors of one line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli import app, main
from tests.bot.test_flagship import QUESTION

NOW = ("--now", "2026-09-26T10:00")
KEYS = ["turn", "shape", "text", "verdict", "citations", "route", "steps", "stop", "gaps", "usage", "ms"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a working folder whose data the module's runs share."""
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _alone(monkeypatch, folder / "data")


def _alone(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    for name in [name for name in os.environ if name.startswith("TWOHOP_") or name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWOHOP_DATA", str(data))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a source tree be tested without installing it: `doctor` prints the installed version."""
    about = tmp_path / "site" / "twohop-0.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: twohop\nVersion: 0.0\n", "utf-8")
    monkeypatch.syspath_prepend(about.parent)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def asked(*arguments: str) -> dict[str, Any]:
    result = run("ask", "--json", *NOW, *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def flagship(folder: Path) -> Iterator[dict[str, Any]]:
    """Ask the flagship once: it indexes the sample for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _alone(patch, folder / "data")
        yield asked(QUESTION)


def test_ask_json_prints_the_documented_keys(flagship: dict[str, Any]) -> None:
    assert list(flagship) == KEYS
    assert flagship["shape"] == "answered"
    assert "13 September 2026" in flagship["text"]
    assert set(flagship["verdict"]) == {"decision", "text", "facts"}
    assert flagship["verdict"]["decision"] == "yes"
    assert flagship["citations"]
    for citation in flagship["citations"]:
        assert list(citation) == ["n", "source", "title", "section", "url", "quote"]
    assert flagship["route"]["path"] == "agent"
    assert list(flagship["route"]) == ["path", "reasons"]
    assert [step["tool"] for step in flagship["steps"]][:2] == ["get_ticket", "search_docs"]
    for step in flagship["steps"]:
        assert {"tool", "arguments", "found", "ms"} <= set(step)
    assert flagship["stop"]
    assert flagship["gaps"] == []
    assert flagship["usage"]["searches"] == 3
    assert flagship["ms"] >= 0


def test_ask_after_follows_a_turn(flagship: dict[str, Any]) -> None:
    found = asked("what about the one the same shop opened yesterday?", "--after", flagship["turn"])
    assert "TCK-4855" in found["text"]


def test_a_stranger_reads_no_ticket(flagship: dict[str, Any]) -> None:
    assert flagship["verdict"]
    found = asked(QUESTION, "--as", "stranger")
    assert found["shape"] == "not_found"
    assert found["verdict"] is None
    assert "Ortega" not in json.dumps(found)


def test_ask_shows_sources_and_steps(flagship: dict[str, Any]) -> None:
    result = run("ask", "--trace", *NOW, QUESTION)
    assert result.exit_code == 0
    assert flagship["text"].splitlines()[0] in result.stdout
    assert "[1] Ticket TCK-4812" in result.stdout
    assert "code: get_ticket(number='4812') → ticket:4812" in result.stdout
    assert "nothing is configured: asking the sample company" in result.stderr


def test_trace_prints_how_an_answer_came_about(flagship: dict[str, Any]) -> None:
    result = run("trace", flagship["turn"][:6])
    assert result.exit_code == 0
    for part in (
        f"turn {flagship['turn']}",
        f"asked     {QUESTION}",
        "route     agent: asks for a rule",
        "step      code: get_ticket",
        "verdict   yes: Yes.",
        "answer    answered",
        "ticket:4812:",
    ):
        assert part in result.stdout


@pytest.mark.usefixtures("installed")
def test_doctor_says_what_works(flagship: dict[str, Any]) -> None:
    assert flagship
    result = run("doctor")
    assert result.exit_code == 0
    assert "these are the sample company's settings" in result.stdout
    for name in ("embedding model", "index", "tickets"):
        assert f"ok    {name}:" in result.stdout
    assert re.search(r"index: 2\d documents, \d{3} chunks", result.stdout)


@pytest.mark.usefixtures("installed")
def test_doctor_says_what_does_not_work_and_hides_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    result = run("doctor")
    assert result.exit_code == 1
    assert "FAIL  index: nothing is indexed yet" in result.stdout
    assert "twohop index" in result.stdout
    assert "sk-very-secret" not in result.output
    assert "OPENAI_API_KEY is set but TWOHOP_MODEL is not" in result.stdout


def test_index_names_what_it_cannot_read_and_does_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "data"))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "returns.md").write_text(
        "# Returns\n\nGoods can be returned within 20 days of delivery.\n", "utf-8"
    )
    (docs / "broken.md").write_bytes(b"\x00\x01\xff\xfe\x00binary" * 40)
    first = run("index", "docs")
    assert first.exit_code == 0
    assert "1 added" in first.stdout
    assert "1 skipped" in first.stdout
    assert "broken.md" in first.stdout
    second = run("index", "docs")
    assert second.exit_code == 0
    assert "0 added" in second.stdout
    assert "1 unchanged" in second.stdout
    (tmp_path / "t.csv").write_text(
        "number,customer,status,subject,body\nT-901,Acme,open,Lost parcel,It never came\n,Beta,open,Wrong item,Blue\n",
        "utf-8",
    )
    imported = run("tickets", "import", "t.csv")
    assert imported.exit_code == 0
    assert "t.csv: 1 tickets added" in imported.stdout
    assert "line 3" in imported.stdout
    again = run("tickets", "import", "t.csv")
    assert "0 tickets added, 0 changed, 1 unchanged" in again.stdout
    found = asked("Within how many days can goods be returned?")
    assert found["citations"][0]["source"].endswith("returns.md")
    assert "20 days" in found["text"]


def test_bench_prints_a_row_for_each_part(flagship: dict[str, Any]) -> None:
    assert flagship
    few = ("bench", "--rounds", "1", "--questions", "2")
    in_words = run(*few)
    assert in_words.exit_code == 0
    assert "2 questions, 1 rounds after one that is not counted" in in_words.stdout
    found = json.loads(run(*few, "--json").stdout)
    assert (found["questions"], found["rounds"]) == (2, 1)
    names = [row["name"] for row in found["rows"]]
    assert names[:4] == ["query embedding", "gate", "index, bare rank", "retrieval"]
    for name in names[:4]:
        assert name in in_words.stdout
    assert list(found["memory_mb"]) == ["at the start", "with the model", "with the desk", "after the run"]
    assert found["machine"]["torch threads"] >= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", ""], "the question is empty"),
        (["ask", "hi", "--now", "tomorrow"], "--now 'tomorrow' is no date"),
        (["ask", "hi", "--config", "missing.toml"], "'missing.toml' does not exist"),
        (["index"], "nothing to index"),
        (["trace", "zzz"], "there is no turn 'zzz'"),
        (["tickets", "import", "missing.csv"], "missing.csv"),
        (["eval", "--modes", "magic"], "--modes 'magic'"),
        (["ask", "hi", "--after", "zzz"], "there is no turn 'zzz'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flagship: dict[str, Any],
) -> None:
    assert flagship
    monkeypatch.setattr(sys, "argv", ["twohop", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert said in lines[0]
    assert "Traceback" not in lines[0]


def test_an_unknown_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWOHOP_COLOUR", "red")
    monkeypatch.setattr(sys, "argv", ["twohop", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "unknown setting 'TWOHOP_COLOUR'" in capsys.readouterr().err


def test_a_mode_that_is_not_one_is_refused() -> None:
    result = run("ask", "hi", "--mode", "magic")
    assert result.exit_code == 2
    assert "magic" in result.output
