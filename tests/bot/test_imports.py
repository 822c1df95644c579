"""What each command loads: no package that it does not use, and nothing heavy before it says something."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SDKS = {
    "slack_sdk",
    "slack_bolt",
    "openai",
    "elasticsearch",
    "aiohttp",
    "prometheus_client",
    "psycopg",
    "alembic",
}
TORCH = {"torch", "transformers", "sentence_transformers"}
VECTORS = {"numpy", "onnx", "onnxruntime", "tokenizers"}
WATCH = """
import atexit, json, sys
def loaded(): return sorted(name for name in sys.modules if "." not in name)
first = []
class Said:
    def __init__(self, stream): self._stream = stream
    def write(self, text): first.append(loaded()) if not first else None; return self._stream.write(text)
    def __getattr__(self, name): return getattr(self._stream, name)
atexit.register(lambda: open("loaded.json", "w").write(json.dumps([first[0] if first else [], loaded()])))
sys.stdout, sys.stderr = Said(sys.stdout), Said(sys.stderr)
from bot.cli import main
main()
"""

Loaded = Callable[..., tuple[set[str], set[str]]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Return a function that runs a command over a small desk, and tells what was loaded at its first word and at its end."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "docs").mkdir()
    (folder / "docs" / "faq.md").write_text("# Lids\n\nA lid may be sent back within 30 days.\n", "utf-8")
    (folder / "tickets.csv").write_text("number,subject,body\n7,A lid,It is bent.\n", "utf-8")
    (folder / "set.jsonl").write_text(
        json.dumps({"id": "1", "type": "lookup", "text": "May a lid be sent back?"}) + "\n", "utf-8"
    )

    def run(*arguments: str) -> tuple[set[str], set[str]]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", WATCH, *arguments],
            cwd=folder,
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        first, last = json.loads((folder / "loaded.json").read_text("utf-8"))
        return set(first), set(last)

    found = run("index", "docs")
    assert not found[1] & (SDKS - {"alembic"} | TORCH)
    return run


def test_help_and_trace_load_neither_vectors_nor_a_vendors_package(loaded: Loaded) -> None:
    assert loaded("--help")[1] & (SDKS | TORCH | VECTORS | {"sqlalchemy", "apscheduler"}) == set()
    loaded("ask", "May a lid be sent back?")
    assert loaded("trace")[1] & (SDKS | TORCH | VECTORS | {"apscheduler"}) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("tickets", "import", "tickets.csv"),
        ("ask", "May a lid be sent back?"),
        ("index", "--rebuild"),
        ("index", "status"),
    ],
    ids=" ".join,
)
def test_a_command_loads_no_torch_and_no_package_of_a_service_that_is_not_configured(
    loaded: Loaded, command: tuple[str, ...]
) -> None:
    assert loaded(*command)[1] & (SDKS | TORCH) == set()


@pytest.mark.parametrize("command", [("ask", "May a lid be sent back?"), ("doctor",)], ids=" ".join)
def test_something_is_said_before_anything_heavy_is_loaded(loaded: Loaded, command: tuple[str, ...]) -> None:
    assert loaded(*command)[0] & (SDKS | TORCH | VECTORS | {"sqlalchemy", "apscheduler"}) == set()
