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
from typer.testing import CliRunner, Result

from bot.cli import app, main
from bot.cli.doctor import probes
from bot.config import load
from bot.store.state import opened
from ingest.errors import ConfigError
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


def test_out_of_time_is_not_not_in_the_sources(
    flagship: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flagship
    monkeypatch.setenv("TWOHOP_LIMITS__SECONDS", "0.000001")
    found = asked(QUESTION)
    assert found["shape"] == "not_found"
    assert found["stop"] == "time limit of 1e-06 seconds"
    assert "at the time limit of 1e-06 seconds" in found["text"]
    assert "could not find" not in found["text"]


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


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with two folders of documents of the same names, of which nothing is indexed yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "data"))
    for folder, days in (("docs", 20), ("more", 50)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "faq.md").write_text(f"# FAQ of {folder}\n\nWithin {days} days.\n", "utf-8")
    (tmp_path / "docs" / "rules.md").write_text("# Rules\n\nGoods can be returned.\n", "utf-8")
    return tmp_path


def indexed(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = run("index", "--json", *arguments)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that ends with exit code 2 and return all that it said on standard error."""
    monkeypatch.setattr(sys, "argv", ["twohop", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def counts(found: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return what was added, removed and left as it was, by source, tickets left out."""
    return {
        name: (of["added"], of["removed"], of["unchanged"])
        for name, of in found["sources"].items()
        if name != "tickets"
    }


QUESTIONS = (
    '{"id": "1", "type": "lookup", "text": "Within how many days?", "now": "2026-09-26", '
    '"expected_route": "direct", "shape": "answered"}\n'
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval"], "name a question set (twohop eval FILE"),
        (["eval", "nope.jsonl"], "question set 'nope.jsonl' cannot be read"),
        (["eval", "empty.jsonl"], "question set 'empty.jsonl' holds no question"),
    ],
)
def test_a_question_set_that_is_not_there_is_named_before_anything_is_loaded(
    arguments: list[str],
    said: str,
    own: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    indexed("docs")
    (own / "empty.jsonl").write_text("\n", "utf-8")
    told = refused(monkeypatch, capsys, *arguments)
    assert said in told
    assert "loading" not in told
    assert counts(indexed()) == {"docs": (0, 0, 2)}


@pytest.mark.usefixtures("installed")
def test_no_command_but_index_changes_an_index_of_ones_own(own: Path) -> None:
    indexed("docs")
    (own / "q.jsonl").write_text(QUESTIONS, "utf-8")
    (own / "docs" / "faq.md").unlink()
    asked_it = run("eval", "q.jsonl")
    assert asked_it.exit_code == 0
    assert "| all | 1 |" in asked_it.stdout
    turn = asked("Within how many days?")["turn"]
    for arguments in (["trace", turn], ["doctor"], ["demo"]):
        assert run(*arguments).exit_code == 0
    found = asked("Within how many days?")
    assert [one["source"] for one in found["citations"]] == ["docs:faq.md"]


def test_a_second_folder_joins_the_first(own: Path) -> None:
    assert counts(indexed("docs")) == {"docs": (2, 0, 0)}
    found = indexed("more")
    assert counts(found) == {"more": (1, 0, 0)}
    assert found["folders"] == {"docs": str(own / "docs"), "more": str(own / "more")}
    assert counts(indexed("docs/rules.md")) == {"docs": (0, 0, 2)}
    (own / "docs" / "rules.md").unlink()
    assert counts(indexed()) == {"docs": (0, 1, 1), "more": (0, 0, 1)}
    in_words = run("index")
    assert f"{own / 'docs'} as docs, {own / 'more'} as more" in in_words.stdout
    found = asked("What is in the FAQ of more?")
    assert found["citations"][0]["source"] == "more:faq.md"


def test_a_folder_leaves_only_when_it_is_forgotten(own: Path) -> None:
    indexed("docs", "more")
    (own / "more").rename(own / "away")
    found = indexed(code=1)
    assert counts(found) == {"docs": (0, 0, 2), "more": (0, 0, 0)}
    assert "cannot be opened" in found["failures"][0]
    assert counts(indexed("--forget", "more")) == {"more": (0, 1, 0)}
    assert counts(indexed()) == {"docs": (0, 0, 2)}


def test_a_folder_that_the_settings_stop_naming_leaves(own: Path) -> None:
    settings = own / "twohop.toml"
    settings.write_text('[sources]\npaths = ["docs", "more"]\n', "utf-8")
    assert counts(indexed()) == {"docs": (2, 0, 0), "more": (1, 0, 0)}
    settings.unlink()
    assert counts(indexed()) == {"docs": (0, 0, 2), "more": (0, 0, 1)}
    settings.write_text('[sources]\npaths = ["more"]\n', "utf-8")
    assert counts(indexed()) == {"more": (0, 0, 1), "docs": (0, 2, 0)}


def test_what_the_settings_name_is_not_forgotten_by_hand(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "twohop.toml").write_text('[sources]\npaths = ["docs"]\n', "utf-8")
    indexed()
    assert "named by sources.paths" in refused(monkeypatch, capsys, "index", "--forget", "docs")
    assert "'nowhere' is no indexed folder" in refused(monkeypatch, capsys, "index", "--forget", "nowhere")
    assert counts(indexed()) == {"docs": (0, 0, 2)}


def test_a_wider_folder_takes_the_place_of_one_inside_it(own: Path) -> None:
    indexed("docs/faq.md")
    (own / "docs" / ".hidden").mkdir()
    (own / "docs" / ".hidden" / "own.md").write_text("# Own\n\nOwn text.\n", "utf-8")
    found = indexed("docs", "docs/.hidden")
    assert found["folders"] == {"docs": str(own / "docs"), "hidden": str(own / "docs" / ".hidden")}
    assert counts(found) == {"docs": (1, 0, 1), "hidden": (1, 0, 0)}


def test_a_folder_that_came_up_empty_loses_nothing_unasked(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    indexed("docs", "more")
    for path in (own / "docs").iterdir():
        path.unlink()
    found = indexed(code=1)
    assert counts(found) == {"docs": (0, 0, 0), "more": (0, 0, 1)}
    assert "--allow-removal" in found["failures"][0]
    assert "missing or empty" in refused(monkeypatch, capsys, "index", "--rebuild")
    assert asked("Within how many days, by the FAQ of docs?")["citations"][0]["source"] == "docs:faq.md"
    assert counts(indexed("--allow-removal")) == {"docs": (0, 2, 0), "more": (0, 0, 1)}


def test_a_rebuild_reads_every_folder(own: Path) -> None:
    indexed("docs")
    assert counts(indexed("more", "--rebuild")) == {"docs": (2, 0, 0), "more": (1, 0, 0)}


def test_globs_of_readers_hold_in_every_folder(own: Path) -> None:
    (own / "more" / "internal").mkdir()
    (own / "more" / "internal" / "faq.md").write_text("# Internal\n\nWithin 90 days.\n", "utf-8")
    (own / "twohop.toml").write_text(
        '[sources]\npaths = ["docs", "more"]\n[sources.readers]\n'
        '"internal/*" = ["support"]\n"docs/rules.md" = ["support"]\n',
        "utf-8",
    )
    indexed()
    for question in ("Within how many days, by the internal page?", "Can goods be returned by the rules?"):
        assert asked(question)["citations"]
        seen = json.dumps(asked(question, "--as", "stranger"))
        assert "internal/faq.md" not in seen
        assert "rules.md" not in seen


def test_an_empty_index_is_said(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    indexed("nowhere", code=1)
    assert "nothing is indexed yet; run `twohop index PATH…`" in refused(
        monkeypatch, capsys, "ask", "Within how many days?"
    )
    (own / "twohop.toml").write_text('[sources]\npaths = ["absent"]\n', "utf-8")
    assert "nothing is indexed yet; run `twohop index`" in refused(monkeypatch, capsys, "ask", "How many?")


TICKETS = "number,customer,status,plan,subject\n"


def test_a_file_of_which_no_row_is_a_ticket_fails_and_teaches_nothing(own: Path) -> None:
    (own / "good.csv").write_text(TICKETS + "A-12,Acme,open,Team,Lost\nA-13,Beta,open,Team,Blue\n", "utf-8")
    (own / "bad.csv").write_text("number,customer,region\n,Acme,North\n,Beta,North\n", "utf-8")
    assert run("tickets", "import", "good.csv").exit_code == 0
    result = run("tickets", "import", "bad.csv")
    assert result.exit_code == 1
    assert "bad.csv: 0 tickets added, 0 changed, 0 unchanged, 2 rows skipped" in result.stdout
    assert "nothing was imported" in result.stdout
    assert "facets:" not in result.stdout
    (own / "twohop.toml").write_text('[tickets]\ncsv = ["bad.csv"]\n', "utf-8")
    assert "bad.csv: no row is a ticket: nothing was imported" in str(indexed("docs", code=1)["failures"])


def test_tickets_that_left_a_file_are_kept_by_hand_and_go_with_the_run_that_the_settings_name_it_for(
    own: Path,
) -> None:
    rows = [f"{4810 + n},Acme,open,Team,Lost\n" for n in range(6)]
    file = own / "t.csv"
    file.write_text(TICKETS + "".join(rows), "utf-8")
    assert run("tickets", "import", "t.csv").exit_code == 0
    file.write_text(TICKETS + "".join(rows[:5]), "utf-8")
    kept = run("tickets", "import", "t.csv")
    assert kept.exit_code == 0
    assert "kept: 1 tickets that it brought before" in kept.stdout
    replaced = run("tickets", "import", "t.csv", "--replace")
    assert "1 tickets that it brought before and has no more were removed" in replaced.stdout
    file.write_text(TICKETS, "utf-8")
    broken = run("tickets", "import", "t.csv")
    assert broken.exit_code == 1
    assert "a header and no row" in broken.stdout
    (own / "twohop.toml").write_text('[tickets]\ncsv = ["t.csv"]\n', "utf-8")
    file.write_text(TICKETS + "".join(rows[:4]), "utf-8")
    report = indexed("docs")
    assert (report["imports"]["t.csv"]["removed"], report["imports"]["t.csv"]["kept"]) == (1, 0)
    file.write_text(TICKETS + rows[0], "utf-8")
    (refused,) = indexed("docs", code=1)["failures"]
    assert "no longer has 3 of the 4 tickets that it brought before" in refused
    assert indexed("--allow-removal")["imports"]["t.csv"]["removed"] == 3


def test_a_cell_that_is_no_number_teaches_no_pattern(own: Path) -> None:
    (own / "t.csv").write_text(TICKETS + "A-12,Acme,open,Team,Lost\n=cmd(),Beta,open,Team,Blue\n", "utf-8")
    result = run("tickets", "import", "t.csv")
    assert result.exit_code == 0
    assert "1 tickets added" in result.stdout
    assert "line 3: '=cmd()' is not a ticket number" in result.stdout
    assert "cmd" not in result.stdout.partition("numbers:")[2].lower()


@pytest.mark.usefixtures("installed", "flagship")
@pytest.mark.parametrize(
    ("url", "said"), [("http://127.0.0.1:9/v1", "check OPENAI_BASE_URL"), ("", "needs OPENAI_API_KEY")]
)
def test_doctor_says_once_that_there_is_no_model_server_and_that_the_index_is_fine(
    monkeypatch: pytest.MonkeyPatch, url: str, said: str
) -> None:
    monkeypatch.setenv("TWOHOP_MODEL", "some-model")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.count(said) == result.stdout.count("FAIL ") == 1
    assert "ok    index:" in result.stdout
    assert "ok    tickets:" in result.stdout


@pytest.mark.usefixtures("installed")
def test_a_facet_whose_column_is_nowhere_is_named(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "t.csv").write_text(TICKETS + "A-12,Acme,open,Team,Lost\n", "utf-8")
    indexed("docs")
    assert run("tickets", "import", "t.csv").exit_code == 0
    assert "ok    tickets" in run("doctor").stdout
    (own / "twohop.toml").write_text('[tickets]\nfacets = { plan = "nocolumn" }\n', "utf-8")
    named = "column 'nocolumn', which [tickets.facets] names for 'plan'"
    told = refused(monkeypatch, capsys, "tickets", "import", "t.csv")
    assert f"t.csv has no {named}; the columns are number, customer" in told
    result = run("doctor")
    assert result.exit_code == 1
    assert f"FAIL  tickets: no imported file had the {named}" in result.stdout


@pytest.mark.usefixtures("installed")
def test_doctor_says_what_to_do_about_an_index_without_documents(own: Path) -> None:
    indexed("nowhere", code=1)
    (own / "t.csv").write_text(TICKETS + "A-12,Acme,open,Team,Lost\n", "utf-8")
    assert run("tickets", "import", "t.csv").exit_code == 0
    result = run("doctor")
    assert result.exit_code == 1
    assert "FAIL  index: it holds no document; run `twohop index PATH…`" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tickets", "import", "missing.csv"], "'missing.csv' cannot be read"),
        (["ask", "hi", "--after", "zzz"], "there is no turn 'zzz'"),
    ],
)
def test_a_name_that_is_wrong_is_said_before_the_model_is_loaded(
    arguments: list[str],
    said: str,
    own: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = refused(monkeypatch, capsys, *arguments)
    assert said in told
    assert "loading" not in told
    assert not (own / "data" / "index").exists(), "an empty index hides the sample company"


@pytest.mark.usefixtures("installed")
def test_the_version_is_printed() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, "twohop 0.0\n")


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
    assert found["machine"]["embedder"] == "sentence-transformers/all-MiniLM-L6-v2"


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


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TWOHOP_CALENDAR__WORKDAYS", "[]", "calendar.workdays = []"),
        ("TWOHOP_CALENDAR__OPENS", "18:00", "closes 17:00:00 must be later than opens 18:00:00"),
        ("TWOHOP_TICKETS__NUMBER_PATTERN", r"\d*", r"number_pattern '\\d*' fits an empty number"),
        ("TWOHOP_SOURCES__READERS", '{"internal/*": []}', "sources.readers.internal/* = []"),
        ("TWOHOP_LIMITS__SECONDS", "inf", "limits.seconds = 'inf'"),
        (
            "TWOHOP_SYNC__SCHEDULE",
            "docs=15",
            "TWOHOP_SYNC__SCHEDULE = 'docs=15' cannot be used: it is not a JSON object;",
        ),
        ("TWOHOP_SLACK__ADMINS", "U1", 'write it as TWOHOP_SLACK__ADMINS=\'["first", "second"]\''),
        (
            "TWOHOP_SLACK__ADMINS",
            '"U1"',
            "TWOHOP_SLACK__ADMINS = '\"U1\"' cannot be used: it is not a JSON list;",
        ),
        ("TWOHOP_SYNC", "15", "TWOHOP_SYNC = '15' cannot be used: it is not a JSON object;"),
        (
            "TWOHOP_ELASTICSEARCH",
            "{key",
            "TWOHOP_ELASTICSEARCH = ******** cannot be used: it is not a JSON object;",
        ),
        (
            "ELASTICSEARCH_URL",
            "127.0.0.1:9200",
            "elasticsearch.url = '127.0.0.1:9200' cannot be used: write it as https://",
        ),
        (
            "TWOHOP_TICKETS__PREFIXES",
            '[""]',
            "tickets.prefixes.0 = '' cannot be used: it is empty; write a text or take",
        ),
        (
            "TWOHOP_ACCESS__GROUPS",
            '{"support": [" "]}',
            "access.groups.support.0 = ' ' cannot be used: it is empty;",
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_at_the_start(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    told = refused(monkeypatch, capsys, "ask", "How many tickets are open?")
    assert said in told
    assert "loading" not in told


LATER = [
    ('schedule = { docs = "61 3 * * *" }', "'61 3 * * *' cannot be scheduled for 'docs' (Error validating"),
    (
        'schedule = { docs = "nonsense" }',
        "'nonsense' cannot be scheduled for 'docs' (it is neither a number nor five",
    ),
    (
        'schedule = { docs = "-5" }',
        "'-5' cannot be scheduled for 'docs' (it is not more than 0 minutes); write in sync.",
    ),
    ('schedule = { docs = "0 0 31 2 *" }', "'0 0 31 2 *' cannot be scheduled for 'docs' (it is never due)"),
    (
        'schedule = { nosuch = "15" }',
        "sync.schedule names 'nosuch'; the sources are docs, tickets: name one of them",
    ),
    ('golden = "nosuch.jsonl"', "sync.golden 'nosuch.jsonl' cannot be read"),
]


@pytest.mark.parametrize(("setting", "said"), LATER)
def test_what_an_index_run_needs_is_looked_at_before_the_bot_loads_the_model(
    setting: str, said: str, own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "twohop.toml").write_text(f'[sources]\npaths = ["docs"]\n\n[sync]\n{setting}\n', "utf-8")
    told = refused(monkeypatch, capsys, "playground")
    assert said in told
    assert "loading" not in told
    found = {name: probe for name, probe in probes(load(None)) if name in ("schedule", "golden questions")}
    with pytest.raises(ConfigError) as caught:
        found["golden questions" if "golden" in setting else "schedule"]()
    assert said in str(caught.value)


def test_doctor_tells_when_what_is_read_and_that_golden_questions_can_be_asked(own: Path) -> None:
    (own / "golden.jsonl").write_text('{"text": "How long?", "sources": ["docs:nosuch.md"]}', "utf-8")
    settings = '[sources]\npaths = ["docs"]\n\n[sync]\ngolden = "golden.jsonl"\nschedule = { docs = "15" }\n'
    (own / "twohop.toml").write_text(settings, "utf-8")
    found = dict(probes(load(None)))
    assert found["schedule"]() == "docs: 15; every other source: 60.0"
    assert found["golden questions"]() == "1; nothing is indexed yet to look for their documents"
    indexed()
    with pytest.raises(ConfigError, match=r"not in the index: 'docs:nosuch\.md' \(line 1\)"):
        found["golden questions"]()


def test_a_mode_that_is_not_one_is_refused() -> None:
    result = run("ask", "hi", "--mode", "magic")
    assert result.exit_code == 2
    assert "magic" in result.output


def test_a_key_with_a_character_that_no_key_has_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret…")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds a character") as refused:
        load(None)
    assert "secret" not in str(refused.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL cannot be read"):
        opened("no url at all")
