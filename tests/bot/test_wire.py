"""The question the product exists for, through the openai client and over real sockets: faults, permutations, a confident no."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot import pipeline
from bot.app import Desk
from bot.chat import OpenAIModel
from bot.cli import app
from bot.offline import NOTE
from bot.parts import Parts
from bot.types import Answer, Limits, Mode, PastTurn, Question
from ingest.embed import Embedder
from tests.bot.test_confident_no import WRONG
from tests.bot.test_flagship import QUESTION, grid, grid_desk, right
from tests.desks import indexed_tickets
from tests.openai_server import (
    Json,
    Line,
    OpenAIServer,
    body,
    calls,
    chunk,
    completion,
    cuts,
    drops,
    hangs,
    says,
    sends,
    status,
    streams,
    trickles,
)

EXPORT = "How long is the link of a full export valid?"
MODES: tuple[Mode, ...] = ("gated", "agent")
PARALLEL = calls(
    ("get_ticket", {"number": "4812"}), ("search_docs", {"query": "refund window, Team plan, annual"})
)


async def _at_once(_: float) -> None:
    """Wait for nothing: a retry's wait is no part of what is tested here."""


@asynccontextmanager
async def wired(
    desk: Desk, *script: Line, forever: bool = False, **more: Any
) -> AsyncIterator[tuple[Parts, OpenAIServer]]:
    async with OpenAIServer(*script, forever=forever) as server:
        model = OpenAIModel("scripted", base_url=server.url, sleep=_at_once)
        try:
            yield dataclasses.replace(desk.parts, model=model, **more), server
        finally:
            await model.close()


async def asked(
    desk: Desk,
    parts: Parts,
    text: str = QUESTION,
    mode: Mode = "gated",
    now: str = "2026-09-26T12:00",
    **more: Any,
) -> Answer:
    moment = datetime.fromisoformat(now).replace(tzinfo=desk.zone)
    return await pipeline.answer(Question(text, desk.asker(), moment, **more), parts, mode)


def number(prompt: str, words: str) -> int:
    """Return the number under which a prompt shows evidence that holds these words."""
    blocks = re.split(r"\n\n(?=\[\d+\] )", prompt)
    block = next(b for b in blocks if words in b and re.match(r"\[\d+\] ", b))
    return int(block[1 : block.index("]")])


def cites(text: str, *words: str) -> Line:
    """Answer with a text whose `{}` are the numbers of the evidence that holds these words."""

    def line(request: Json) -> Line:
        prompt = request["messages"][1]["content"]
        return says(text.format(*(number(prompt, word) for word in words)))

    return line


# --- the flagship -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", ["2026-09-26T12:00", "2026-12-01T12:00"])
@pytest.mark.parametrize("mode", MODES)
async def test_the_flagship_with_parallel_calls(sample: Desk, mode: Mode, now: str) -> None:
    last = cites("The Team plan has a window of its own [{}].", "Team plan terms > 7")
    async with wired(sample, PARALLEL, last) as (parts, server):
        answered = await asked(sample, parts, mode=mode, now=now)
    right(answered)
    assert [(step.tool, step.by) for step in answered.steps if step.by == "model"] == [
        ("get_ticket", "model"),
        ("search_docs", "model"),
    ]
    assert [bool(request.get("tools")) for request in server.requests] == [True, True]
    assert answered.usage.calls == 2
    assert (answered.usage.input_tokens, answered.usage.estimated) == (200, False)
    assert "Calls made so far" in server.requests[1]["messages"][1]["content"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", WRONG)
async def test_a_confident_no_over_the_wire_is_not_posted(sample: Desk, text: str, mode: Mode) -> None:
    template = text.replace("{ticket}", "{0}").replace("{faq}", "{1}")
    line = cites(template, "(ticket:4812)", "(docs:refunds-faq.md)")
    async with wired(sample, line, forever=True) as (parts, server):
        answered = await asked(sample, parts, mode=mode)
    right(answered)
    assert len(server.requests) == 1
    for word in ("lapsed", "missed", "out of luck", "too late", "refused", "not possible", "Two weeks"):
        assert word not in answered.text
    assert f"{pipeline.CHECKS[0].upper()}{pipeline.CHECKS[1:]}. {NOTE}" in answered.text


@pytest.mark.parametrize("mode", MODES)
async def test_the_articles_own_path_over_the_wire(sample: Desk, mode: Mode) -> None:
    computed = calls(("deadline", {"start": "2026-08-14", "amount": 14, "unit": "day"}))
    no = cites("No, it closed on 28 August [{}][{}].", "(ticket:4812)", "(computed)")
    async with wired(sample, computed, no) as (parts, _):
        answered = await asked(sample, parts, mode=mode)
    right(answered)


async def test_the_grid_over_the_wire(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> None:
    """The model reads the ticket and the rule, and says the opposite of what is right."""
    desk, rows = grid_desk(tmp_path_factory.mktemp("grid"), embedder), list(grid())
    try:
        for row, yes, last in rows:
            own = row["number"].removeprefix("TCK-")
            looked = calls(
                ("get_ticket", {"number": own}),
                ("search_docs", {"query": f"{row['plan']} plan, {row['billing']}: refunds"}),
            )
            said = "No, they are too late [{}]." if yes else "Yes, they are entitled to a refund [{}]."
            async with wired(desk, looked, cites(said, f"(ticket:{own})")) as (parts, server):
                answered = await asked(
                    desk,
                    parts,
                    f"Is the customer on ticket {row['number']} entitled to a refund?",
                    now="2026-12-01T09:00",
                )
            what = (row["plan"], row["billing"], row["charged_on"], row["refund_requested_on"], answered.text)
            assert answered.verdict is not None, what
            assert answered.verdict.decision == ("yes" if yes else "no"), what
            assert said.partition(",")[2].partition("[")[0] not in answered.text, what
            if last is not None:
                assert f"{last.day} {last:%B %Y}" in answered.text, what
            others = {r["number"] for r, _, _ in rows} - {row["number"]}
            assert not set(re.findall(r"TCK-\d+", server.prompts)) & others, what
    finally:
        desk.close()


# --- faults -------------------------------------------------------------------------------------------------------

WHOLE = json.dumps(completion({"content": "No, it closed on 28 August [1]."}))
FAULTS: dict[str, tuple[Line, str]] = {
    "429": (status(429, "slow down"), "is too busy"),
    "429, wait an hour": (status(429, "slow down", headers={"Retry-After": "3600"}), "is too busy"),
    "quota exhausted": (status(429, "You exceeded your current quota", code="insufficient_quota"), "quota is used up"),
    "500": (status(500, "stack trace of 10.1.2.3"), "cannot be reached"),
    "401": (status(401, "bad key sk-1234"), "is not set up right"),
    "404": (status(404, "no such model"), "is not set up right"),
    "connection dropped": (drops(), "cannot be reached"),
    "cut": (cuts(WHOLE[:-40]), "cannot be reached"),
    "cut short of its length": (cuts(WHOLE[:-40], promised=len(WHOLE)), "cannot be reached"),
    "HTML with 200": (sends("<html><body>Sign in to the proxy</body></html>", "text/html"), "no usable answer"),
    "error with 200": (body({"error": {"message": "overloaded at 10.1.2.3", "code": 1}}), "no usable answer"),
    "no choices": (body({"choices": None}), "no usable answer"),
    "no finish": (says("No, it closed on 28 August [1].", None), "no usable answer"),
    "unknown finish": (says("No, it closed on 28 August [1].", "abort"), "no usable answer"),
    "withheld": (says("No, it closed on 28 August [1].", "content_filter"), "declined to answer"),
    "empty content": (says(""), "gave no answer"),
    "no content": (says(None), "gave no answer"),
    "all reasoning": (says("<think>No, it closed on 28 August", "length"), "gave no answer"),
    "truncated": (says("No, it closed on 28 August [1].", "length"), "gave no answer"),
    "truncated call": (calls(("search_docs", '{"query": "28 August'), finish="length"), "gave no answer"),
    "unread call": (says('{"name": "refund_customer", "arguments": {"on": "28 August"}}'), "gave no answer"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_leaves_the_offline_answer_and_says_so(sample: Desk, fault: str) -> None:
    """The first question goes to the loop, the second one to one call."""
    line, why = FAULTS[fault]
    for text in (QUESTION, EXPORT):
        async with wired(sample, line, forever=True) as (parts, server):
            answered = await asked(sample, parts, text)
        if text == QUESTION:
            right(answered)
        else:
            assert answered.shape == "answered"
            assert "7 days" in answered.text
        assert why in answered.text.splitlines()[-1], answered.text
        assert answered.text.endswith(NOTE)
        for leak in (
            "10.1.2.3",
            "sk-1234",
            "<",
            "{",
            "think",
            "proxy",
            "Traceback",
            "refund_customer",
            "28 August",
        ):
            assert leak not in answered.text
        assert 1 <= len(server.requests) <= 6
        assert answered.usage.calls == len(server.requests), "attempts are counted as calls"


@pytest.mark.parametrize("slow", [hangs(), trickles()])
async def test_a_slow_server_ends_with_the_questions_time(sample: Desk, slow: Line) -> None:
    async with wired(sample, slow, forever=True, limits=Limits(seconds=2)) as (parts, _):
        answered = await asked(sample, parts)
    right(answered)
    assert "The language model did not answer in time." in answered.text


@pytest.mark.parametrize("slow", [hangs(), trickles()])
async def test_a_slow_server_leaves_time_to_quote(sample: Desk, slow: Line) -> None:
    """Where no rule decides, the quotations are all there is, and they need no server."""
    async with wired(sample, slow, forever=True, limits=Limits(seconds=2)) as (parts, _):
        answered = await asked(sample, parts, EXPORT)
    assert "7 days" in answered.text
    assert "The language model did not answer in time." in answered.text


async def test_a_server_that_fails_midway_keeps_what_was_found(sample: Desk) -> None:
    bad = status(500)
    async with wired(sample, PARALLEL, bad, bad, bad) as (parts, _):
        answered = await asked(sample, parts)
    right(answered)
    assert [bool(reply.calls) for reply in answered.replies] == [True]
    assert any("500" in reason for reason in answered.rejected)
    assert answered.usage.calls == 4


async def test_a_passing_fault_is_not_seen(sample: Desk) -> None:
    answer_ = cites("The link is valid for 7 days [{}].", "valid for 7 days")
    async with wired(sample, status(503), sends("<html>", "text/html"), answer_) as (parts, _):
        answered = await asked(sample, parts, EXPORT)
    assert answered.text == "The link is valid for 7 days [1]."
    assert answered.usage.calls == 3


async def test_out_of_tokens_is_said(sample: Desk) -> None:
    """There are too few left for a last call, so none is made."""
    greedy = calls(
        ("search_docs", {"query": "refunds"}), usage={"prompt_tokens": 29_000, "completion_tokens": 20}
    )
    async with wired(sample, greedy, limits=Limits(tokens=30_000)) as (parts, _):
        answered = await asked(sample, parts)
    right(answered)
    assert "The limit of 30000 tokens for one question is reached." in answered.text


async def test_not_found_says_why_no_model_looked(sample: Desk) -> None:
    async with wired(sample, status(401)) as (parts, _):
        answered = await asked(sample, parts, "What is the capital of Mongolia?")
    assert answered.shape == "not_found"
    assert answered.text.endswith("The language model is not set up right.")


async def test_a_models_query_is_not_posted(sample: Desk) -> None:
    """“I searched for …” would let a model, or a text that it obeys, say anything."""
    query = calls(("search_docs", {"query": "visit evil.example, every refund is granted until 31 May"}))
    async with wired(sample, says(""), query, forever=True) as (parts, _):
        answered = await asked(sample, parts, "What is the capital of Mongolia?")
    assert answered.shape == "not_found"
    assert [step.by for step in answered.steps].count("model") >= 1
    assert "evil" not in answered.text
    assert "31 May" not in answered.text


async def test_the_baselines_outlive_a_fault(sample: Desk) -> None:
    async with wired(sample, status(401)) as (parts, _):
        answered = await asked(sample, parts, mode="hybrid")
    assert answered.shape == "not_found"


# --- calls in odd shapes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        says('{"name": "search_docs", "arguments": {"query": "refund window Team annual"}}'),
        says(
            '<tool_call>{"name": "search_docs", "arguments": {"query": "refund window Team annual"}}</tool_call>'
        ),
        calls(("search_docs", {"query": "refund window Team annual"}), ids=("",)),
        calls(("search_docs", '{"query": "refund window Team annual"}{"query": "annual renewal invoice"}')),
    ],
)
async def test_a_call_in_any_shape_is_run(sample: Desk, line: Line) -> None:
    async with wired(sample, line, says("")) as (parts, server):
        server.script.append(says(""))
        answered = await asked(sample, parts)
    right(answered)
    ran = [step for step in answered.steps if step.by == "model"]
    assert {"query": "refund window Team annual"} in [step.arguments for step in ran]
    assert not any(step.error for step in ran)


async def test_malformed_calls_are_text_for_the_model(sample: Desk) -> None:
    bad = calls(
        ("delete_ticket", {"number": "4812"}),
        ("get_ticket", "{not json"),
        ("get_ticket", {"number": "4821"}),
        ("search_docs", ""),
        ("", {}),
        ids=("same",) * 5,
    )
    async with wired(sample, bad, says("See the terms.")) as (parts, server):
        answered = await asked(sample, parts, mode="agent")
    right(answered)
    told = server.requests[1]["messages"][1]["content"]
    for part in (
        "there is no tool 'delete_ticket'",
        "are not JSON",
        "ticket 4821 is not in the question",
        "query: Field",
    ):
        assert part in told
    assert len([step for step in answered.steps if step.by == "model"]) == 5


async def test_an_unread_call_is_a_failed_step_and_the_loop_goes_on(sample: Desk) -> None:
    async with wired(sample, says("get_ticket(number=4812)"), PARALLEL, says("See the terms.")) as (
        parts,
        server,
    ):
        answered = await asked(sample, parts, mode="agent")
    right(answered)
    assert len(server.requests) == 3
    assert answered.replies[0].left_out == "get_ticket(number=4812)"
    assert "looked like a call" in server.requests[1]["messages"][1]["content"]


async def test_a_model_that_never_stops_is_asked_once_more_without_tools(sample: Desk) -> None:
    """Under `tool_choice="none"` some servers call tools all the same; a request without tools cannot."""
    seen = iter(range(1000))

    def again(request: Json) -> Line:
        return calls(("search_docs", {"query": f"subject number {next(seen)} of plan"}))

    async with wired(sample, again, forever=True) as (parts, server):
        answered = await asked(sample, parts, mode="agent")
    right(answered)
    assert len(server.requests) <= sample.parts.limits.turns + 1
    assert "tools" not in server.requests[-1]
    assert all("tool_choice" not in request for request in server.requests)
    assert len(server.requests[-1]["messages"]) == 2, "built fresh from the evidence"


async def test_the_prompt_does_not_grow_with_the_turns(sample: Desk) -> None:
    seen = iter(range(1000))

    def again(request: Json) -> Line:
        return calls(*(("search_docs", {"query": f"subject number {next(seen)} of plan"}) for _ in range(3)))

    async with wired(sample, again, forever=True) as (parts, server):
        await asked(sample, parts, EXPORT, mode="agent")
    sizes = [sum(len(m["content"]) for m in request["messages"]) for request in server.requests]
    assert max(sizes[2:]) < 1.5 * sizes[1]


# --- good answers, repairs, follow-ups ----------------------------------------------------------------------------


async def test_a_models_good_answer_is_posted_as_its_own(sample: Desk) -> None:
    async with wired(sample, cites("The link is valid for 7 days [{}].", "valid for 7 days")) as (parts, _):
        answered = await asked(sample, parts, EXPORT)
    assert answered.text == "The link is valid for 7 days [1]."
    assert [c.source for c in answered.citations] == ["docs:data-export.md"]


async def test_a_repair_tells_what_was_wrong(sample: Desk) -> None:
    bad = cites("Zeppelins fly for 99 days [{}].", "valid for 7 days")
    good = cites("The link is valid for 7 days [{}].", "valid for 7 days")
    async with wired(sample, bad, good) as (parts, server):
        answered = await asked(sample, parts, EXPORT)
    assert "valid for 7 days" in answered.text
    assert "99 days" in server.requests[1]["messages"][-1]["content"]


async def test_for_a_wrong_sentence_the_source_speaks_without_another_call(sample: Desk) -> None:
    bad = cites("The link is valid for 99 days [{}].", "valid for 7 days")
    async with wired(sample, bad) as (parts, _):
        answered = await asked(sample, parts, EXPORT)
    assert "valid for 7 days" in answered.text
    assert "99 days" not in answered.text
    assert "99 days" in " ".join(answered.rejected)


async def test_a_truncated_answer_reaches_no_other_prompt(sample: Desk) -> None:
    cut = says("The link is valid for 99 days", "length")
    async with wired(sample, cut, cut, cut) as (parts, server):
        answered = await asked(sample, parts, EXPORT)
    assert "7 days" in answered.text
    assert "99 days" not in server.prompts


TURN = PastTurn(
    "a1", QUESTION, QUESTION, "Yes, until 13 September 2026 [1].", "answered", tickets=("4812",), customers=("Ortega Hardware",)
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "searched"),
    [
        (says('{"question": "Who is assigned to ticket 4812?"}'), "Who is assigned to ticket 4812?"),
        (
            says('```json\n{"question": "Who is assigned to ticket 4812?"}\n```'),
            "Who is assigned to ticket 4812?",
        ),
        (says('{"question": "Who is assigned to ticket 4821?"}'), "who is assigned to ticket TCK-4812?"),
        (says('{"question": "Who is assigned to Bodegas Nieto?"}'), "who is assigned to ticket TCK-4812?"),
        (says('{"question": "Who is'), "who is assigned to ticket TCK-4812?"),
        (
            says('{"question": "Who is assigned to ticket 4812?"}', "length"),
            "who is assigned to ticket TCK-4812?",
        ),
        (status(401), "who is assigned to ticket TCK-4812?"),
    ],
)
async def test_a_follow_up_is_rewritten_under_the_same_checks(
    sample: Desk, line: Line, searched: str
) -> None:
    async with wired(sample, line, says("")) as (parts, server):
        server.script += [says("")] * 2
        answered = await asked(sample, parts, "who is assigned to it?", history=(TURN,))
        del server.script[:]
    assert answered.standalone == searched
    assert server.requests[0]["response_format"]["type"] == "json_schema"
    assert "tools" not in server.requests[0]
    assert "Lucía" in answered.text or "Assignee" in answered.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("and 4821?", "4821"),
        ("what about TCK-4182?", "4182"),
        ("what about the one the same shop opened yesterday?", "25 September 2026"),
        ("and for Bodegas Nieto?", "Bodegas Nieto"),
    ],
)
async def test_a_rewrite_that_loses_what_the_follow_up_names_is_not_used(
    sample: Desk, text: str, kept: str
) -> None:
    async with wired(sample, says(json.dumps({"question": QUESTION})), says(""), forever=True) as (parts, _):
        answered = await asked(sample, parts, text, history=(TURN,))
    assert kept in answered.standalone


async def test_no_other_customers_ticket_reaches_a_prompt_over_the_wire(sample: Desk) -> None:
    curious = calls(
        ("get_ticket", {"number": "4821"}),
        ("similar_tickets", {"text": "refund"}),
        ("find_tickets", {"text": "refund"}),
    )
    async with wired(sample, curious, says("See the terms.")) as (parts, server):
        answered = await asked(sample, parts)
    right(answered)
    moment = datetime(2026, 9, 26, tzinfo=sample.zone)
    own = {t.number: t for t in indexed_tickets(sample.tickets, moment)}
    for other in ("4821", "4182"):
        assert own[other].customer not in server.prompts
        assert own[other].subject not in server.prompts


# --- the script itself --------------------------------------------------------------------------------------------


async def test_a_script_that_is_called_too_often_or_too_seldom_fails(sample: Desk) -> None:
    with pytest.raises(AssertionError, match="too seldom"):
        async with wired(sample, says("a"), says("b"), says("c"), says("d")) as (parts, _):
            await asked(sample, parts)
    with pytest.raises(AssertionError, match="too often"):
        async with wired(sample, PARALLEL) as (parts, _):
            await asked(sample, parts)


# --- the terminal -------------------------------------------------------------------------------------------------


@contextmanager
def elsewhere(
    *script: Line, forever: bool = False, models: tuple[str, ...] = ("scripted",)
) -> Iterator[OpenAIServer]:
    """Serve from another thread, for the commands, which start event loops of their own."""
    ready, over = threading.Event(), threading.Event()
    server = OpenAIServer(*script, forever=forever, models=models)
    failures: list[BaseException] = []

    async def serve() -> None:
        try:
            async with server:
                ready.set()
                await asyncio.get_running_loop().run_in_executor(None, over.wait)
        except AssertionError as error:
            failures.append(error)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        over.set()
        thread.join(10)
    assert not failures, failures


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a working folder whose data the module's runs share."""
    return tmp_path_factory.mktemp("wire")


@pytest.fixture
def terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.chdir(folder)
    for name in ("TWOHOP_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TWOHOP_DATA", str(folder / "data"))
    return monkeypatch


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_terminal_asks_the_model_that_is_named(terminal: pytest.MonkeyPatch) -> None:
    with elsewhere(cites("The link is valid for 7 days [{}].", "valid for 7 days")) as server:
        terminal.setenv("TWOHOP_MODEL", "scripted")
        terminal.setenv("OPENAI_BASE_URL", server.url)
        result = run("ask", "--json", "--now", "2026-09-26", EXPORT)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["text"] == "The link is valid for 7 days [1]."


def test_a_key_alone_changes_nothing_and_is_said(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("OPENAI_API_KEY", "sk-stray")
    with elsewhere() as server:
        terminal.setenv("OPENAI_BASE_URL", server.url)
        result = run("ask", "--now", "2026-09-26", EXPORT)
    assert result.exit_code == 0, result.output
    assert NOTE in result.stdout
    assert (
        "note: OPENAI_API_KEY is set but TWOHOP_MODEL is not, so no language model is used" in result.stderr
    )
    assert "sk-stray" not in result.output


LONG = {"prompt_tokens": 9000, "completion_tokens": 1}
COUNTED = (
    chunk("one"),
    chunk(None, "stop"),
    chunk(usage={"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}),
)


def doctored(result: Result) -> dict[str, str]:
    """Return the doctor's lines about the model: the probe's name and the line."""
    lines = re.findall(r"^((?:ok|FAIL) +language model, ([^:]+): .*)$", result.stdout, re.MULTILINE)
    return {name: line for line, name in lines}


def test_doctor_finds_what_a_good_server_can_do(terminal: pytest.MonkeyPatch) -> None:
    script = (
        says("y", "length"),
        calls(("get_ticket", {"number": "4812"})),
        says('{"colour": "green"}'),
        streams(*COUNTED),
        says("yes", usage={**LONG, "prompt_tokens": 4500}),
        says("yes", usage=LONG),
    )
    with elsewhere(*script) as server:
        terminal.setenv("TWOHOP_MODEL", "scripted")
        terminal.setenv("OPENAI_BASE_URL", server.url)
        terminal.setenv("OPENAI_API_KEY", "sk-secret")
        lines = doctored(run("doctor"))
    assert list(lines) == [
        "models",
        "one-token call",
        "tool call",
        "schema call",
        "stream with usage",
        "context window",
    ]
    assert all(line.startswith("ok") for line in lines.values()), lines
    assert "9000 tokens" in lines["context window"]
    assert "with usage" in lines["stream with usage"]
    assert server.requests[0]["max_tokens"] == 1
    assert "sk-secret" not in "".join(lines.values())


def test_doctor_names_the_next_step_for_a_poor_server(terminal: pytest.MonkeyPatch) -> None:
    script = (
        status(404, "no such model"),
        says("I would read ticket 4812."),
        says("green"),
        streams(chunk("one")),
        says("yes", usage={**LONG, "prompt_tokens": 4096}),
        says("yes", usage={**LONG, "prompt_tokens": 4096}),
    )
    with elsewhere(*script, models=("other",)) as server:
        terminal.setenv("TWOHOP_MODEL", "scripted")
        terminal.setenv("OPENAI_BASE_URL", server.url)
        result = run("doctor")
        lines = doctored(result)
    assert result.exit_code == 1
    assert all(line.startswith("FAIL") for line in lines.values()), lines
    for probe, step in {
        "models": "set TWOHOP_MODEL",
        "one-token call": "check TWOHOP_MODEL and OPENAI_BASE_URL",
        "tool call": "--jinja",
        "schema call": "by rule",
        "stream with usage": "check the proxies",
        "context window": "chat.context_tokens = 4096",
    }.items():
        assert step in lines[probe], lines[probe]


def test_a_model_without_a_server_stops_the_start_with_the_fix(terminal: pytest.MonkeyPatch) -> None:
    from ingest.errors import ConfigError

    terminal.setenv("TWOHOP_MODEL", "some-model")
    with pytest.raises(ConfigError, match="needs OPENAI_API_KEY, or OPENAI_BASE_URL"):
        run("ask", EXPORT)
