"""Elasticsearch's settings: the names that people know, secrets that nobody sees, and the switch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.config import load, unused
from bot.sample import demo_settings
from ingest.errors import ConfigError

KEY = "c2VjcmV0OnNlY3JldA=="
URL = "https://search.example.com:9200"


def test_the_names_that_people_know_fill_the_section(tmp_path: Path) -> None:
    file = tmp_path / "twohop.toml"
    file.write_text('index = "elastic"\n[elasticsearch]\nprefix = "desk"\n')
    names = {"ELASTICSEARCH_URL": URL, "ELASTICSEARCH_USERNAME": "bot", "ELASTICSEARCH_PASSWORD": KEY}
    settings = load(file, {**names, "ELASTICSEARCH_CA_CERTS": "ca.pem"})
    section = settings.elasticsearch
    assert (section.url, section.username, section.prefix) == (URL, "bot", "desk")
    assert section.password.get_secret_value() == KEY
    assert section.ca_certs == Path("ca.pem")
    assert unused(settings) == ()


@pytest.mark.parametrize(
    "names",
    [
        {"ELASTICSEARCH_URL": f"https://bot:{KEY}@search.example.com"},
        {"ELASTICSEARCH_URL": f"search.example.com/{KEY}"},
        {"ELASTICSEARCH_API_KEY": KEY, "ELASTICSEARCH_USERNAME": "bot", "ELASTICSEARCH_PASSWORD": KEY},
        {"ELASTICSEARCH_PASSWORD": KEY},
        {"ELASTICSEARCH_USERNAME": "bot", "ELASTICSEARCH_API_KEY": KEY},
        {"ELASTICSEARCH_CA_CERTS": "ca.pem", "ELASTICSEARCH_FINGERPRINT": "ab" * 32},
        {"ELASTICSEARCH_FINGERPRINT": "not a fingerprint"},
    ],
)
def test_settings_that_contradict_each_other_are_refused_without_showing_a_secret(
    names: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="elasticsearch") as caught:
        load(None, names)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("PREFIX", "Two Hop", "write small letters, digits"),
        ("PREFIX", "twohop-generation", "let it end otherwise than in -generation"),
        ("PREFIX", "twohop-previous-1", "let it end otherwise"),
        ("PREFIX", "twohop-lease", "let it end otherwise"),
        ("LANGUAGE", "Light German", "as in english or light_german"),
        ("FINGERPRINT", "ab:cd", "32 pairs of hexadecimal digits"),
    ],
)
def test_what_may_be_written_is_said_in_words(setting: str, value: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "twohop.toml"
    file.write_text(f'[elasticsearch]\n{setting.lower()} = "{value}"\n')
    with pytest.raises(ConfigError, match=said) as caught:
        load(file, {})
    assert repr(value) in str(caught.value)
    assert "pattern" not in str(caught.value)


def test_a_stray_address_is_one_line_and_the_sample_never_goes_into_a_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stray = load(None, {"ELASTICSEARCH_URL": URL})
    assert stray.index == "sqlite"
    assert [line for line in unused(stray) if "TWOHOP_INDEX" in line]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TWOHOP_INDEX", "elastic")
    assert load(None).index == "elastic"
    assert demo_settings(load(None)).index == "sqlite"


def test_a_cluster_that_is_down_is_said_once_and_in_short(tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TWOHOP_")},
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TWOHOP_INDEX": "elastic",
        "ELASTICSEARCH_URL": "http://127.0.0.1:9",
    }
    argv = [sys.executable, "-m", "bot.cli", "ask", "When is a refund paid?"]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "could not be searched" in done.stdout
    assert done.stderr.count("127.0.0.1:9") == 1
    assert "cannot be reached (Connection refused)" in done.stderr


def test_the_doctor_shows_no_key_and_tells_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("TWOHOP_INDEX", "elastic"),
        ("ELASTICSEARCH_URL", "http://127.0.0.1:9"),
        ("ELASTICSEARCH_API_KEY", KEY),
    ):
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert KEY not in done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith("FAIL  Elasticsearch")]
    assert "127.0.0.1:9" in line
    assert "ELASTICSEARCH_URL" in done.output
