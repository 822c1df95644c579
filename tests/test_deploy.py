"""What stands in `deploy/` is true: its names are settings, its ports and versions agree, its commands and metrics exist."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bot.cli import app
from bot.config import VENDOR_NAMES, Settings, load, unused
from bot.metrics import GAUGES, Metrics, Part
from bot.slack.app import manifest
from ingest.config import ElasticsearchSettings
from ingest.database import database_url
from ingest.tickets.guess import FIELDS

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: Mapping[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
OPERATIONS = (DEPLOY / "operations.md").read_text(encoding="utf-8")
SAMPLE = dict(
    line.split("=", 1)
    for line in (DEPLOY / "env.sample").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
OWN = {"POSTGRES_PASSWORD", "ELASTIC_PASSWORD", "DOCS", "TICKETS", "MODELS", "MODEL_FILE"}
"""Names that compose alone reads."""

PRIVILEGES: Mapping[str, str] = {
    "info": "monitor",
    "indices.create": "manage",
    "indices.delete": "manage",
    "indices.get": "manage",
    "indices.get_alias": "manage",
    "indices.refresh": "manage",
    "indices.update_aliases": "manage",
    "bulk": "write",
    "delete": "write",
    "index": "write",
    "count": "read",
    "get": "read",
    "msearch": "read",
    "search": "read",
}
"""Each call of Elasticsearch that the code makes, and the least privilege that allows it."""


def instructions(name: str) -> list[str]:
    """Return the arguments of each instruction of a name in the Dockerfile, its lines joined."""
    return re.findall(rf"^\s*{name} (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)


def image_environment() -> dict[str, str]:
    """Return what the image sets."""
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def variables(of: Any) -> set[str]:
    """Return the names that a value of compose takes from `.env`."""
    return set(re.findall(r"(?<!\$)\$\{(\w+)", json.dumps(of)))


def test_the_image_and_compose_set_nothing_but_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    bot = COMPOSE["services"]["bot"]["environment"]
    given = {name: "given" if name.endswith(("TOKEN", "PASSWORD")) else value for name, value in bot.items()}
    given |= {"TWOHOP_MODEL": "local", "OPENAI_BASE_URL": "http://model:8081/v1", "OPENAI_API_KEY": ""}
    for name, value in {**image_environment(), **given}.items():
        if name.startswith("TWOHOP_") or name in VENDOR_NAMES:
            monkeypatch.setenv(name, value)
    settings = load(DEPLOY / "twohop.toml")
    assert set(bot) <= {*VENDOR_NAMES, "TWOHOP_CONFIG", "TWOHOP_INDEX", "TWOHOP_MODEL"}
    assert (settings.index, settings.log, settings.health.host) == ("elastic", "json", "0.0.0.0")
    assert unused(settings) == ()


def test_each_name_of_env_sample_is_read_and_each_name_that_is_read_is_there() -> None:
    assert variables(COMPOSE) == set(SAMPLE)
    assert set(SAMPLE) <= OWN | set(VENDOR_NAMES) | {"TWOHOP_MODEL"}


def ticket_settings(tmp_path: Path) -> Iterator[Settings]:
    """Yield the settings that `twohop.toml` gives with each of its commented sections switched on."""
    text = (DEPLOY / "twohop.toml").read_text(encoding="utf-8")
    for section in re.findall(r"^# \[tickets\]\n(?:# .*\n)+", text, re.MULTILINE):
        file = tmp_path / "twohop.toml"
        file.write_text(
            text.replace(section, re.sub("^# ", "", section, flags=re.MULTILINE)), encoding="utf-8"
        )
        yield load(file, {})


def test_both_ways_to_tickets_are_settings_with_a_place_in_compose(tmp_path: Path) -> None:
    files, database = ticket_settings(tmp_path)
    bot = COMPOSE["services"]["bot"]
    (folder,) = [volume.rsplit(":", 2)[1] for volume in bot["volumes"] if "TICKETS" in volume]
    assert [file.parent.as_posix() for file in files.tickets.csv] == [folder]
    assert f'csv = ["{files.tickets.csv[0]}"]' in OPERATIONS
    assert database.tickets.table
    assert {"number", "customer", "updated_at"} <= set(database.tickets.columns) <= set(FIELDS)
    text = (DEPLOY / "env.sample").read_text(encoding="utf-8")
    assert "[tickets] table" in text.partition("TICKETS_DATABASE_URL=")[0]


def test_a_database_on_the_containers_machine_has_a_name_there() -> None:
    (name,) = [host.partition(":")[0] for host in COMPOSE["services"]["bot"]["extra_hosts"]]
    assert f"`{name}`" in OPERATIONS
    address = re.search(r"# (postgresql://\S+)", (DEPLOY / "env.sample").read_text(encoding="utf-8"))
    assert address is not None
    assert database_url(address[1], "TICKETS_DATABASE_URL").host == name


def test_no_secret_has_a_default() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    secrets = [name for name in SAMPLE if name.endswith(("_TOKEN", "_PASSWORD"))]
    assert secrets
    for name in secrets:
        assert SAMPLE[name] == ""
        uses = re.findall(rf"\$\{{{name}(.*?)\}}", text)
        assert uses
        assert {use.partition(":?")[1] for use in uses} == {":?"}, name


def test_the_bot_never_sees_what_rules_its_servers() -> None:
    bot = COMPOSE["services"]["bot"]
    assert not variables(bot) & {"ELASTIC_PASSWORD"}
    assert "env_file" not in bot
    assert not [volume for volume in bot["volumes"] if volume.startswith("certificates:")]


def test_ports_and_the_health_path_agree() -> None:
    port = image_environment()["TWOHOP_HEALTH__PORT"]
    (check,) = re.findall(r"HEALTHCHECK.*?CMD (\[.*?\])\n", DOCKERFILE, re.DOTALL)
    assert f"http://127.0.0.1:{port}/healthz" in json.loads(check)[2]
    assert instructions("EXPOSE") == [port]
    assert COMPOSE["services"]["bot"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"http://127.0.0.1:{port}/healthz" in OPERATIONS
    assert f'targets: ["127.0.0.1:{port}"]' in OPERATIONS


def test_versions_and_folders_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert COMPOSE["services"]["bot"]["image"] == f"twohop:{project['version']}"
    oldest = project["requires-python"].removeprefix(">=")
    assert {line.split(":")[1].split("-")[0] for line in instructions("FROM")} == {oldest}
    kept = instructions("VOLUME")
    assert kept == [image_environment()["TWOHOP_DATA"]]
    assert f"data:{kept[0]}" in COMPOSE["services"]["bot"]["volumes"]
    for volume in COMPOSE["services"]["bot"]["volumes"]:
        source = volume.split(":")[0]
        if source.startswith("./"):
            assert (DEPLOY / source).exists(), source
    for line in instructions("COPY"):
        for source in line.split()[:-1]:
            assert source.startswith("--from") or source.startswith("/opt") or (ROOT / source).exists(), (
                source
            )


def test_the_image_needs_no_network_and_no_rights() -> None:
    environment = image_environment()
    assert environment["HF_HUB_OFFLINE"] == environment["TRANSFORMERS_OFFLINE"] == "1"
    assert re.fullmatch(r"[1-9]\d+", instructions("USER")[-1])
    assert json.loads(instructions("ENTRYPOINT")[0]) + json.loads(instructions("CMD")[-1]) == [
        "twohop",
        "serve",
    ]


def test_every_service_is_bounded_and_what_others_wait_for_says_when_it_is_ready() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        assert service["mem_limit"], name
        assert service["restart"], name
        for other, when in service.get("depends_on", {}).items():
            if when["condition"] == "service_healthy":
                assert "healthcheck" in services[other], other
    used = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ()) if v[0].isalpha()}
    assert used == set(COMPOSE["volumes"])
    grace = services["bot"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > load(None, {}).slack.drain_seconds


def calls() -> Iterator[str]:
    """Yield each call of Elasticsearch's client in the code, such as `indices.get`."""
    for path in sorted((ROOT / "ingest" / "index" / "elastic").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                whole = ast.unparse(node.func).replace(
                    "self._client.options(request_timeout=_REQUEST_SECONDS)", "client"
                )
                if found := re.fullmatch(r"(?:self\._)?client\.((?:\w+\.)?\w+)", whole):
                    yield found[1]


def test_the_role_of_elasticsearch_allows_what_the_code_calls_and_no_more() -> None:
    used = set(calls()) - {"options", "close"}
    assert used == set(PRIVILEGES)
    role = json.loads((DEPLOY / "elasticsearch-role.json").read_text(encoding="utf-8"))
    (indices,) = role["indices"]
    prefix = ElasticsearchSettings().prefix
    assert indices["names"] == [prefix, f"{prefix}-*"]
    assert {*role["cluster"], *indices["privileges"]} == {PRIVILEGES[call] for call in used}
    assert set(role) == {"cluster", "indices"}


def exposed() -> set[str]:
    """Return the names of all metrics that a bot can show."""
    metrics = Metrics()
    parts = {"queue": Part(True, "", dict.fromkeys(GAUGES, 1.0))}
    text = metrics.text(parts).decode()
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def test_alerts_and_the_dashboard_ask_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text(encoding="utf-8"))
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {name for expression in asked for name in re.findall(r"\b(?:twohop|process)_\w+", expression)}
    known = exposed()
    assert len(names) > 10
    assert {
        name for name in names if name not in known and re.sub(r"_(bucket|count|sum)$", "", name) not in known
    } == set()


def test_each_alert_has_its_first_step_on_the_page() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text(encoding="utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    assert re.findall(r"^\| `(Twohop\w+)` \|", OPERATIONS, re.MULTILINE) == alerts


def test_the_commands_and_settings_of_the_page_exist() -> None:
    words = re.findall(r"(?:`|exec bot |)twohop ([a-z]+)(?: ([a-z]+))?", OPERATIONS)
    words += re.findall(r"run --rm bot ([a-z]+)(?: ([a-z]+))?", OPERATIONS)
    commands = {(command, sub) for command, sub in words if command in {"doctor", "index", "trace", "serve"}}
    assert {
        ("index", "status"),
        ("index", "rollback"),
        ("index", ""),
        ("doctor", ""),
        ("trace", ""),
    } <= commands
    for command, sub in commands:
        asked = [command, sub, "--help"] if command == "index" and sub else [command, "--help"]
        assert CliRunner().invoke(app, asked).exit_code == 0, asked
    settings = load(None, {})
    sections = "health|slack|sync|limits|elasticsearch|tickets"
    for section, name in re.findall(rf"`({sections})\.(\w+)", OPERATIONS):
        assert hasattr(getattr(settings, section), name), f"{section}.{name}"


def test_the_page_names_the_scopes_of_the_manifest() -> None:
    table = OPERATIONS.partition("| scope | why |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([a-z_]+:[a-z]+|commands)`", table)) == sorted(
        manifest()["oauth_config"]["scopes"]["bot"]
    )


def test_the_page_tells_of_every_file() -> None:
    for path in DEPLOY.iterdir():
        assert path == DEPLOY / "operations.md" or path.name.removesuffix(".dockerignore") in OPERATIONS, (
            path.name
        )
