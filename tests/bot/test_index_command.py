"""`twohop index --json`: what the schedule's child prints, and how it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli import app
from ingest.schedule import run_child

SETTINGS = """
[sources]
paths = ["docs"]

[tickets]
csv = ["tickets.csv"]
"""


@pytest.fixture(autouse=True)
def desk_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with settings, one document that can be read, one that cannot, and tickets."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWOHOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "data"))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "returns.md").write_text("# Returns\n\nGoods can be returned within 20 days.\n", "utf-8")
    (docs / "broken.md").write_bytes(b"\x00\x01\xff\xfe\x00binary" * 40)
    (tmp_path / "twohop.toml").write_text(SETTINGS, "utf-8")
    (tmp_path / "tickets.csv").write_text(
        "number,customer,status,subject,body\nT-901,Acme,open,Lost parcel,It never came\n,Beta,open,Wrong item,Blue\n",
        "utf-8",
    )
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["index", *arguments], catch_exceptions=False)


def reported(result: Result) -> dict[str, Any]:
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def test_everything_that_the_settings_name_is_indexed_and_reported(desk_folder: Path) -> None:
    result = run("--json")
    assert result.exit_code == 0
    found = reported(result)
    assert {name: found[name] for name in ("ok", "added", "changed", "removed", "unchanged", "failures")} == {
        "ok": True,
        "added": 2,
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
        "failures": [],
    }
    assert {name: of["added"] for name, of in found["sources"].items()} == {"docs": 1, "tickets": 1}
    assert found["imports"]["tickets.csv"]["added"] == 1
    assert [one["uri"] for one in found["skipped"]] == ["tickets.csv line 3", "docs:broken.md"]
    assert all(one["reason"] for one in found["skipped"])
    assert found["seconds"] >= max(of["seconds"] for of in found["sources"].values())

    (desk_folder / "docs" / "returns.md").write_text("# Returns\n\nWithin 30 days.\n", "utf-8")
    again = reported(run("--json"))
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 1, 1)


def test_a_ticket_file_that_cannot_be_read_fails_the_run_but_not_the_documents(desk_folder: Path) -> None:
    (desk_folder / "tickets.csv").unlink()
    result = run("--json")
    assert result.exit_code == 1
    found = reported(result)
    assert found["ok"] is False
    assert found["sources"]["docs"]["added"] == 1
    assert len(found["failures"]) == 1
    assert "tickets.csv cannot be read" in found["failures"][0]
    in_words = run()
    assert in_words.exit_code == 1
    assert "tickets.csv cannot be read" in in_words.stdout


async def test_as_a_child_it_is_what_the_schedule_runs() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-m", "bot.cli", "index", "--json"]
    found = await run_child(argv, deadline_seconds=300, env=environment)
    assert found.ok, found
    assert found.report is not None
    assert found.report["added"] == 2
