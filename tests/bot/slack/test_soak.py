"""The long proof of the Slack side: acks while an index is rebuilt and ten questions are answered."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import textwrap
from pathlib import Path

import pytest

from bot.app import Desk
from bot.playground.server import SlackServer
from bot.sample import sample as sample_folder
from ingest.schedule import run_child
from tests.bot.slack.conftest import SUPPORT, replies
from tests.bot.slack.test_serve import environment, served

QUESTIONS = (
    "Is the customer on ticket 4812 entitled to a refund?",
    "How long after a charge can a customer ask for a refund?",
    "What does error ERR_SSO-4032 mean?",
    "How many tickets are open, by priority?",
    "What is the first response target on the Business plan?",
)
PAGES = 12
REBUILD = """
    import json, sys
    from datetime import datetime, UTC
    from pathlib import Path
    from bot.app import build
    from bot.config import load
    from ingest.config import SourceSettings
    from ingest.parse import to_document
    from ingest.sources.folder import FolderSource
    from ingest.sync import rebuild

    settings = load(Path(sys.argv[1]))
    sources = SourceSettings(paths=(*settings.sources.paths, Path(sys.argv[2])))
    desk = build(settings)
    source = (FolderSource(sources), lambda changed: to_document(changed, sources, "docs"))
    reports = rebuild([source], desk.index, desk.embedder, settings.chunks, now=datetime.now(UTC))
    desk.close()
    print(json.dumps({"documents": sum(len(r.added) for r in reports), "chunks": sum(r.chunks for r in reports)}))
"""


@pytest.mark.soak
async def test_acks_come_within_a_second_while_an_index_is_rebuilt_and_ten_questions_are_answered(
    sample: Desk, slack: SlackServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    page = (sample_folder() / "docs" / "terms" / "team-terms.md").read_text(encoding="utf-8")
    for n in range(PAGES):
        (more / f"page-{n}.md").write_text(f"# Page {n}\n\n{page.rpartition('---')[2]}", encoding="utf-8")
    config = tmp_path / "twohop.toml"
    config.write_text(
        f"data = {json.dumps(str(tmp_path / 'data'))}\n"
        + (sample_folder() / "twohop.toml")
        .read_text(encoding="utf-8")
        .replace("[tickets]", f"[tickets]\ncsv = [{json.dumps(str(sample_folder() / 'tickets.csv'))}]")
        + f"\n[sources]\npaths = [{json.dumps(str(sample_folder() / 'docs'))}]\n"
        + f'\n[access.groups]\nsupport = ["{SUPPORT}"]\n',
        encoding="utf-8",
    )
    index = (sys.executable, "-m", "bot.cli", "index", "--json", "--config", str(config))
    assert (await run_child(index, deadline_seconds=300)).ok
    env = environment(tmp_path / "data", slack, tmp_path, TWOHOP_CONFIG=str(config))
    asked: list[str] = []
    open_: set[str] = set()
    async with served(env, tmp_path) as bot:
        await slack.connected(1, 120)
        argv = (sys.executable, "-c", textwrap.dedent(REBUILD), str(config), str(more))
        run = asyncio.create_task(run_child(argv, deadline_seconds=900))
        while not run.done():
            while len(open_) < 10:
                ts = await slack.say(SUPPORT, "D_SAM", QUESTIONS[len(asked) % len(QUESTIONS)])
                asked.append(ts)
                open_.add(ts)
            await asyncio.sleep(0.1)
            open_ -= {ts for ts in open_ if replies(slack, "D_SAM", ts)}
        meanwhile = len(asked) - len(open_)
        await slack.wait_for(lambda: all(replies(slack, "D_SAM", ts) for ts in open_), 300)
        await slack.wait_for(lambda: not slack.unfinished())
        bot.terminate()
        _, log = await bot.communicate()
    (tmp_path / "serve.log").write_bytes(log)
    rebuilt = run.result()
    acks = sorted(slack.acks.values())
    with capsys.disabled():
        sys.stdout.write(
            f"\nrebuilt {rebuilt.report} in {rebuilt.seconds:.0f} s beside ten questions at a time, "
            f"{meanwhile} answered meanwhile, {len(asked)} in all\n"
            f"acks: {len(acks)}, median {statistics.median(acks) * 1000:.0f} ms, "
            f"95 % {acks[int(len(acks) * 0.95)] * 1000:.0f} ms, longest {acks[-1] * 1000:.0f} ms\n"
        )
    assert rebuilt.ok, rebuilt.reason
    assert meanwhile >= 10
    assert [len(replies(slack, "D_SAM", ts)) for ts in asked] == [1] * len(asked)
    assert not slack.unacked()
    assert acks[-1] < 1
