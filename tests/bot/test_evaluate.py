"""The evaluation: what it judges, what it measures, and what it says of what it cannot read."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli import app, main
from bot.evaluate.figures import area, risk
from bot.evaluate.intervals import mean
from bot.evaluate.judge import Outcome, judge
from bot.evaluate.labels import Labelled
from bot.evaluate.ranking import measured
from bot.evaluate.record import Asked
from bot.evaluate.run import ask
from bot.evaluate.tables import markdown, outcomes
from bot.offline import NOTE
from bot.types import Answer, Decision, Message, Reply, Route, Shape, Verdict
from tests.desks import prepared, small_settings
from tests.fakes import HashingEmbedder

LOANS = """# Loans

A drill can be borrowed for 6 days. A ladder can be borrowed for 9 days.

Members of the Gold tier can borrow a drill for 12 days.
"""
OPENING = "# Opening hours\n\nThe tool library opens at 10:30 on Saturdays.\n"
SETTINGS = """company = "Tool library"
[sources]
paths = ["docs"]
[tickets]
csv = ["tickets.csv"]
facets = { tier = "tier" }
[access.groups]
support = ["pim"]
"""
TICKETS = "number,customer,status,priority,subject,body,opened_at,tier\n7001,Ada Quill,open,low,Drill,The drill is late.,2026-03-02,Gold\n"
DESK_LINE = {
    "id": "one",
    "type": "single",
    "text": "When does the tool library open on Saturdays?",
    "history": [],
    "now": "2026-03-04",
    "asker_readers": ["members", "support"],
    "expected_route": "direct",
    "sources": ["docs:opening.md"],
    "shape": "answered",
    "decision": "",
    "must": [["10:30", "half past ten"]],
    "must_not": [],
    "answer": "At 10:30.",
    "why": "opening.md",
}
OLD_LINE = {
    "id": "two",
    "type": "lookup",
    "text": "For how many days can a ladder be borrowed? <script>",
    "now": "2026-03-04",
    "expected_route": "direct",
    "sources": ["docs:loans.md", "ticket:7001"],
    "shape": "answered",
    "must": ["99 days"],
}
FOLLOW_UP = {
    **DESK_LINE,
    "id": "three",
    "type": "follow_up",
    "text": "what is the tier of that ticket?",
    "history": [{"question": "What is the status of ticket 7001?", "answer": "Open."}],
    "sources": ["ticket:7001"],
    "must": [["Gold"]],
}
OFFICE = {**DESK_LINE, "id": "four", "needs": "office"}


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _alone(monkeypatch, tmp_path / "data")


def _alone(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("TWOHOP_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWOHOP_DATA", str(data))


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["eval", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def write_lines(path: Path, *lines: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def make_desk(folder: Path, *lines: dict[str, Any]) -> Path:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "loans.md").write_text(LOANS, "utf-8")
    (folder / "docs" / "opening.md").write_text(OPENING, "utf-8")
    (folder / "twohop.toml").write_text(SETTINGS, "utf-8")
    (folder / "tickets.csv").write_text(TICKETS, "utf-8")
    write_lines(folder / "questions.jsonl", *lines)
    return folder


@pytest.fixture(scope="module")
def measured_desk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Evaluate a desk in several modes once, and return where its JSON and its page are, and what was printed."""
    folder = tmp_path_factory.mktemp("evaluated")
    desk = make_desk(folder / "library", DESK_LINE, OLD_LINE, FOLLOW_UP, OFFICE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _alone(patch, folder / "data")
        modes = ("--modes", "naive,direct,gated,agent", "--skip-needs", "office", "--failures")
        said = run(desk, *modes, "--json", "found.json", "--html", "page.html")
        before = sorted(path.relative_to(desk) for path in desk.rglob("*"))
    assert [str(path) for path in before] == [
        *("docs", "docs/loans.md", "docs/opening.md", "questions.jsonl", "tickets.csv", "twohop.toml")
    ]
    return folder, said


def records(folder: Path, mode: str) -> dict[str, dict[str, Any]]:
    found = json.loads((folder / "found.json").read_text("utf-8"))
    return {record["id"]: record for record in found["asked"] if record["mode"] == mode}


def test_a_desk_is_asked_with_its_own_settings_clock_asker_and_history(
    measured_desk: tuple[Path, Result],
) -> None:
    gated = records(measured_desk[0], "gated")
    assert {id_: record["outcome"] for id_, record in gated.items()} == {
        "one": "right",
        "two": "wrong",
        "three": "right",
    }
    assert gated["two"]["why"] == "lacks ['99 days']"
    assert gated["three"]["ranking"][0] == "ticket:7001"


def test_every_mode_is_measured_by_what_its_searches_returned(measured_desk: tuple[Path, Result]) -> None:
    for mode in ("naive", "direct", "gated", "agent"):
        one = records(measured_desk[0], mode)["one"]
        assert "docs:opening.md" in one["ranking"]
        assert one["metrics"]["recall@5"] == 1
        assert one["searches"] >= 1
        assert set(one["stages"]) >= {"read", "first search", "write", "check"}
    naive = records(measured_desk[0], "naive")["two"]
    # Dense search finds the ticket as a text; nothing of it is cited.
    assert naive["metrics"]["all@any"] == float({"docs:loans.md", "ticket:7001"} <= set(naive["ranking"]))


def test_mode_direct_never_enters_the_loop_and_agent_always_does(measured_desk: tuple[Path, Result]) -> None:
    folder, _ = measured_desk
    assert {record["route"] for record in records(folder, "direct").values()} == {"direct"}
    assert {record["route"] for record in records(folder, "agent").values()} == {"agent"}


def test_the_report_is_readable_at_a_hundred_columns(measured_desk: tuple[Path, Result]) -> None:
    said = measured_desk[1].stdout
    table = [line for line in said.splitlines() if line.startswith("|")]
    assert table
    assert max(map(len, table)) <= 100
    assert re.search(r"\| all +\| 3 \| +2 \(0–100%\) \|", said)
    assert "- library two (lookup, mode gated) wrong: For how many days" in said


def test_the_page_is_self_contained_and_escapes_what_it_shows(measured_desk: tuple[Path, Result]) -> None:
    page = (measured_desk[0] / "page.html").read_text("utf-8")
    assert "<script" not in page
    assert "borrowed? &lt;script&gt;" in page
    assert not re.search(r"""(?:src|href)=|url\(|@import|https?://""", page)
    assert page.count("<svg") >= 4
    assert "prefers-color-scheme: dark" in page


def test_two_results_are_compared_question_by_question(measured_desk: tuple[Path, Result]) -> None:
    folder, _ = measured_desk
    found = json.loads((folder / "found.json").read_text("utf-8"))
    for record in found["asked"]:
        if record["id"] == "two":
            record["outcome"] = "right"
    (folder / "better.json").write_text(json.dumps(found), "utf-8")
    said = run("--compare", folder / "found.json", folder / "better.json").stdout
    assert re.search(r"\| all +\| 3 \| +\+33 \(\+0 to \+100\) \| +-33 \(-100 to ", said)
    assert "4 of 12 questions changed" in said
    assert said == run("--compare", folder / "found.json", folder / "better.json").stdout


def test_only_these_questions_are_asked_and_a_string_prints_nothing_but_json(tmp_path: Path) -> None:
    desks = [make_desk(tmp_path / name, DESK_LINE, OLD_LINE) for name in ("first", "second")]
    said = run(*desks, "--only", "one", "--json", "-").stdout
    found = json.loads(said)
    assert [(r["set"], r["id"]) for r in found["asked"]] == [("first", "one"), ("second", "one")]
    assert set(found) == {"seed", "version", "asked", "searched", "sentences", "figures"}
    of = found["figures"]["asked"]["all sets"]["gated"]
    assert of["types"]["all"]["n"] == 2
    assert of["types"]["all"]["right"] == {"count": 2, "value": 1.0, "low": 1.0, "high": 1.0, "n": 2}
    assert set(of) == {
        *("types", "outcomes", "retrieval", "routes", "risk", "stages_ms", "median_words", "median_ms")
    }


def test_a_public_set_is_searched_in_each_way(tmp_path: Path) -> None:
    folder, more = tmp_path / "public", tmp_path / "more"
    papers = [
        {"id": "a#1", "title": "Bees", "text": "Bees make honey from nectar."},
        {"id": "b", "title": "Wasps", "text": "Wasps build nests of paper."},
        {"id": "c", "title": "Glaciers", "text": "A glacier is a river of ice."},
    ]
    write_lines(folder / "corpus.jsonl", *papers)
    queries = [
        {"id": "q1", "text": "Who makes honey?", "answer": "bees"},
        {"id": "q2", "text": "wasp nests paper"},
        {"id": "none", "text": "nothing is labelled for this"},
    ]
    write_lines(folder / "queries.jsonl", *queries)
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\ta#1\t1\nq2\tb\t1\nq2\ta#1\t0\n", "utf-8"
    )
    write_lines(more / "corpus.jsonl", {"id": "d", "title": "Ants", "text": "Ants walk."})
    found = json.loads(run(folder, "--distractors", more, "--json", "-").stdout)
    assert [(s["arm"], s["id"]) for s in found["searched"]] == [
        (arm, query) for arm in ("lexical", "dense", "hybrid") for query in ("q1", "q2")
    ]
    assert found["figures"]["searched"]["public"]["hybrid"]["mrr@10"]["value"] == 1.0
    first = json.loads(run(folder, "--limit", "1", "--json", "-").stdout)
    assert {s["id"] for s in first["searched"]} == {"q1"}


def test_rule_sentences_are_counted_by_kind(tmp_path: Path) -> None:
    sentences = [
        {"id": "1", "text": "A drill can be returned within 5 days.", "states_rule": True, "kind": "period", "amount": 5, "unit": "day"},
        {"id": "2", "text": "We were founded in a shed.", "states_rule": False, "kind": "history", "amount": None, "unit": None},
        {"id": "3", "text": "The fee is 4 euros.", "states_rule": True, "kind": "fee", "amount": 4, "unit": "currency"},
    ]  # fmt: skip
    file = write_lines(tmp_path / "rules.jsonl", *sentences)
    found = json.loads(run(file, "--json", "-").stdout)
    assert found["figures"]["sentences"]["rules.jsonl"]["amount and unit, recall"] == [1, 1]
    assert found["figures"]["sentences"]["rules.jsonl"]["states a rule, precision"] == [1, 1]
    assert re.search(r"\| states a rule, recall +\| +1/2 50% \|", run(file).stdout)


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({}, ["empty"], "'empty' is neither a desk nor a public set; give a desk (a folder with twohop.toml"),
        ({"half/corpus.jsonl": "{}"}, ["half"], "it has only corpus.jsonl"),
        ({"q.jsonl": "{nope"}, ["q.jsonl"], "q.jsonl line 1 is '{nope': the line: Invalid JSON"),
        ({"q.jsonl": '\n{"id": "1"}'}, ["q.jsonl"], "q.jsonl line 2 is '{\"id\": \"1\"}': text: Field required"),
        (
            {"q.jsonl": json.dumps({**DESK_LINE, "shape": "long"})},
            ["q.jsonl"],
            "shape: Input should be 'answered', 'partial', 'clarify', 'not_found', 'unavailable' or 'chat' (it is 'long')",
        ),
        (
            {"q.jsonl": f"{json.dumps(DESK_LINE)}\n{json.dumps(DESK_LINE)}"},
            ["q.jsonl"],
            "line 2 has the id 'one' of an earlier line; give it another",
        ),
        ({"q.jsonl": "\n"}, ["q.jsonl"], "question set 'q.jsonl' holds no question"),
        ({"q.jsonl": json.dumps(DESK_LINE)}, ["q.jsonl", "--only", "nine"], "--only 'nine'"),
        ({"q.jsonl": json.dumps(DESK_LINE)}, ["q.jsonl", "q.jsonl"], "are called 'q.jsonl'; rename one"),
        ({"a.json": "{}"}, ["--compare", "a.json", "a.json"], "'a.json' is no result of an evaluation"),
        (
            {
                "p/corpus.jsonl": '{"id": "a", "text": "x"}',
                "p/queries.jsonl": '{"id": "q", "text": "x"}',
                "p/qrels.tsv": "q\tb\t1\n",
            },
            ["p"],
            "p/qrels.tsv line 1 is 'q b 1': there is no document 'b'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_named_with_the_next_step(
    files: dict[str, str],
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setattr(sys, "argv", ["twohop", "eval", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())
    assert "loading" not in told


def question(**labels: Any) -> Labelled:
    return Labelled.model_validate({**DESK_LINE, "must": [["6 days", "six days"]], **labels})


def answer(text: str, shape: Shape = "answered", decision: Decision | None = None) -> Answer:
    verdict = Verdict(decision, "", ()) if decision else None
    return Answer(shape, f"{text}\n\n{NOTE}", Route("direct", ()), "", verdict=verdict)


FAR = " ".join(["word"] * 130)


@pytest.mark.parametrize(
    ("labels", "given", "outcome"),
    [
        ({}, answer("It is 6 DAYS."), "right"),
        ({}, answer("It is six days.", "partial"), "right"),
        ({}, answer("It is 16 days."), "wrong"),
        ({}, answer(f"{FAR} 6 days"), "late"),
        ({"type": "a_list"}, answer(f"{FAR} 6 days"), "right"),
        ({"must": ["12 €", "Gold"]}, answer("Góld: 12 €."), "right"),
        ({"must": ["12 €", "Gold"]}, answer("Gold: 12."), "wrong"),
        ({"must_not": ["9 days"]}, answer("It is 6 days. A ladder has 9 days."), "harmful"),
        ({"must_not": ["9 days"]}, answer("It is 6 days, not the ladder's 9 days."), "right"),
        ({"must_not": ["9 days"]}, answer("It is 6 days. Not a doubt! 9 days."), "harmful"),
        ({"decision": "yes"}, answer("6 days", decision="yes"), "right"),
        ({"decision": "yes"}, answer("6 days", decision="no"), "harmful"),
        ({"decision": "yes"}, answer("6 days", decision="rule"), "undecided"),
        ({"decision": "no"}, answer("6 days"), "undecided"),
        ({}, answer("Nothing was found.", "not_found"), "refused"),
        ({}, answer("Which one?", "clarify"), "refused"),
        ({}, answer("Hello.", "chat"), "wrong"),
        ({"shape": "not_found", "must": []}, answer("Nothing was found.", "not_found"), "abstained"),
        ({"shape": "not_found", "must": []}, answer("Which one?", "clarify"), "abstained"),
        ({"shape": "clarify", "must": []}, answer("6 days"), "wrong"),
        ({"shape": "not_found", "must_not": ["6 days"]}, answer("6 days"), "harmful"),
        ({"shape": "chat", "must": []}, answer("Hello.", "chat"), "right"),
        ({"shape": "chat", "must": []}, answer("6 days"), "wrong"),
    ],
)
def test_an_answer_is_judged_by_its_labels(labels: dict[str, Any], given: Answer, outcome: Outcome) -> None:
    assert judge(question(**labels), given).outcome == outcome


def test_metrics_are_those_worked_out_by_hand() -> None:
    found = measured(
        {"q": ["x", "a", "y", "z", "w", "b"], "empty": []}, {"q": {"a": 1, "b": 1}, "empty": {"a": 1}}
    )
    # Gains at places 2 and 6 of an ideal 1 and 2: (1/log2(3) + 1/log2(7)) / (1 + 1/log2(3)).
    assert found["q"] == pytest.approx(
        {"recall@5": 0.5, "recall@10": 1, "all@5": 0, "all@10": 1, "all@any": 1, "mrr@10": 0.5, "ndcg@10": 0.60531},
        abs=1e-4,
    )  # fmt: skip
    assert set(found["empty"].values()) == {0.0}


def test_an_interval_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    values = [1.0] * 30 + [0.0] * 70
    assert mean(values, 3) == mean(values, 3)
    assert mean(values, 3) != mean(values, 4)
    found = mean(values, 3)
    # The normal approximation: 0.3 plus or minus 1.96 times the root of 0.3 * 0.7 / 100.
    assert (found.value, found.low, found.high) == pytest.approx((0.3, 0.21, 0.39), abs=0.015)


def record(outcome: Outcome, confidence: float, shape: Shape = "answered") -> Asked:
    return Asked(
        "s", "gated", "", "t", "", outcome, "", shape, "direct", "direct", "",
        ms=1.0, relevant=(), confidence=confidence,
    )  # fmt: skip


def test_risk_is_of_the_surest_answers_first_and_equal_confidence_is_no_order() -> None:
    held = [
        record("right", 0.9),
        record("harmful", 0.5),
        record("right", 0.5),
        record("refused", 0.0, "not_found"),
    ]
    for order in (held, held[::-1]):
        curve = risk(order)
        assert [(p.coverage, round(p.risk, 4)) for p in curve] == [(0.25, 0.0), (0.5, 0.25), (0.75, 0.3333)]
        assert area(curve) == pytest.approx((0 + 0.25 + 1 / 3) / 3)
    assert risk([record("refused", 0.0, "not_found")]) == []


class Broken:
    """A ChatModel with a bug."""

    name = "broken"
    note = ""

    async def complete(self, messages: Sequence[Message], **_: Any) -> Reply:
        """Fail as no model should."""
        raise RuntimeError("a bug")


def test_a_bug_costs_one_question_and_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = small_settings(tmp_path, {"loans.md": LOANS, "opening.md": OPENING})
    desk = prepared(settings, HashingEmbedder(), Broken())
    try:
        questions = [
            Labelled.model_validate(line)
            for line in (
                {**DESK_LINE, "text": "What does ERR-4711 mean for a ladder?"},
                {**DESK_LINE, "id": "hi", "text": "Hello"},
            )
        ]
        found = desk.run(ask(desk, "bugs", questions, ["gated"]))
    finally:
        desk.close()
    assert [(r.id, r.outcome, r.shape) for r in found] == [("one", "crash", "crash"), ("hi", "wrong", "chat")]
    assert found[0].why == "RuntimeError('a bug')"
    assert "question one of bugs in mode gated" in caplog.text
    assert "1 crashed; see the log." in markdown(outcomes("bugs", "gated", found, 0))
