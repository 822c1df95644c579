"""The checks: what of a model's text may stay, sentence by sentence, and how its markers become citations."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.check import check, finish
from bot.evidence import ticket_text
from bot.types import EvidenceItem
from ingest.types import Ticket

READERS = frozenset({"members"})
FAQ = (
    "You can ask for a refund within 14 days of the charge. The fee of €29 is returned to the same card.\n"
    "Monthly plans are not refunded."
)
EXPORT = "The link is valid for 7 days. Only owners can start a full export. ALB-3001 means that the file is too large."


def item(n: int, text: str, title: str = "Refunds FAQ", url: str = "") -> EvidenceItem:
    return EvidenceItem(n, "doc", f"docs:{n}.md#0", f"docs:{n}.md", title, "Refunds", url, text, READERS)


def ticket(n: int) -> EvidenceItem:
    row = Ticket(
        "4812",
        "Ortega Hardware",
        "Refund of our subscription?",
        opened_at=datetime(2026, 9, 2, 10, 14, tzinfo=UTC),
    )
    text = ticket_text(row, "TCK-4812")
    return EvidenceItem(
        n, "ticket", "ticket:4812", "ticket:4812", "Ticket TCK-4812", row.subject, "", text, READERS
    )


SHOWN = (
    item(1, FAQ, url="https://help.example/refunds"),
    item(2, EXPORT, "Exporting your data"),
    ticket(3),
)


@pytest.mark.parametrize(
    "text",
    [
        "You can ask for a refund within 14 days of the charge [1].",
        "“The fee of €29 is returned to the same card.” [1]",
        "Monthly plans are not refunded [1].",
        "Only owners can start a full export [2].",
        "Ticket TCK-4812 of Ortega Hardware was opened on 2 September 2026 [3].",
        "Ask for a refund within 14 days of the charge: see https://help.example/refunds [1].",
        "A refund can be asked for within two weeks of the charge [1].",
    ],
)
def test_what_the_sources_say_stays(text: str) -> None:
    result = check(text, SHOWN)
    assert result.text == text
    assert result.problems == ()


SECURITY = item(
    4,
    "A link to reset a password is valid for 60 minutes and works once. People are signed out after 12 hours without activity. "
    "Support can never switch off two-step verification by telephone.\n\n"
    "| Function | Team | Business |\n|---|---|---|\n| SAML sign-on | no | yes |\n| Backups a day | 1 | 4 |\n",
    "Security",
)


@pytest.mark.parametrize(
    "text",
    [
        "A link to reset a password is valid for 12 hours and works once [4].",
        "12 hours [4].",
        "“12 hours” [4].",
        "A link to reset a password is valid for at least 60 minutes [4].",
        "A link to reset a password is valid for ever and works again and again [4].",
        "A link to reset a password is valid for a fortnight [4].",
        "SAML sign-on is there on Team [4].",
        "SAML sign-on on Team: yes [4].",
        "Backups are made 4 times a day on Team [4].",
        "Support can switch off two-step verification by telephone: “two-step verification by telephone” [4].",
        "Support can switch off two-step verification by telephone for anyone [4].",
        "Yes.",
        "Yes, they can.",
        "Monthly plans are refunded within 14 days of the charge [1].",
    ],
)
def test_two_true_halves_of_a_source_make_no_true_sentence(text: str) -> None:
    result = check(text, (*SHOWN, SECURITY), question="How long is a password reset link valid?")
    assert result.text == ""
    assert result.problems


@pytest.mark.parametrize(
    "text",
    [
        "A link to reset a password is valid for 60 minutes and works once [4].",
        "60 minutes [4].",
        "Security, Refunds: “Function: Backups a day; Team: 1; Business: 4” [4]",
        "Security: “People are signed out after 12 hours without activity.” [4]",
    ],
)
def test_what_one_sentence_or_cell_says_stays(text: str) -> None:
    result = check(text, (*SHOWN, SECURITY), question="How long is a password reset link valid?")
    assert (result.text, result.problems) == (text, ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("You can ask for a refund within 30 days of the charge [1].", "30 days"),
        ("The fee of €49 is returned to the same card [1].", "€49"),
        ("Ask for a refund by 28 August of the charge [1].", "28 August"),
        ("Ticket TCK-4821 of Ortega Hardware was opened on 2 September 2026 [3].", "TCK-4821"),
        ("ALB-3005 means that the file is too large [2].", "ALB-3005"),
        ("Ask for a refund from Carmen within 14 days of the charge [1].", "Carmen"),
        ("Refund to the same card: see https://evil.example/refunds [1].", "link"),
        ("See https://help.example/refunds for a full export [2].", "link"),
        ("Only owners can start a full export of bananas in zeppelins over volcanoes [2].", "not what"),
    ],
)
def test_what_is_not_in_the_cited_evidence_is_taken_out(text: str, reason: str) -> None:
    result = check(text, SHOWN)
    assert result.text == ""
    assert reason in result.problems[0]


@pytest.mark.parametrize(
    "text",
    [
        "You cannot ask for a refund within 14 days of the charge [1].",
        "Monthly plans are refunded [1].",
        "Owners can never start a full export [2].",
        "The fee is not returned to the same card [1].",
    ],
)
def test_a_flipped_negation_is_taken_out(text: str) -> None:
    result = check(text, SHOWN)
    assert result.text == ""
    assert "yes into a no" in result.problems[0]


@pytest.mark.parametrize("marker", ["[99]", "[0]", "[1,99]", "[1][99]"])
def test_a_marker_of_nothing_takes_its_sentence_out(marker: str) -> None:
    result = check(f"You can ask for a refund within 14 days of the charge {marker}.", SHOWN)
    assert result.text == ""
    assert "was not shown" in result.problems[0]


@pytest.mark.parametrize(
    "text",
    ["Refunds take 14 days.", "You can ask for a refund within 14 days of the charge.", "Owners export."],
)
def test_a_claim_without_a_marker_is_taken_out(text: str) -> None:
    result = check(text, SHOWN)
    assert result.text == ""
    assert "cites nothing" in result.problems[0]


def test_one_bad_sentence_leaves_the_good_ones() -> None:
    good = "Only owners can start a full export [2]."
    result = check(f"{good} The link is valid for 9 days [2]. Monthly plans are not refunded [1].", SHOWN)
    assert result.text == f"{good} Monthly plans are not refunded [1]."
    assert len(result.problems) == 1


def test_an_atom_of_another_source_does_not_count() -> None:
    assert check("The link is valid for 14 days [2].", SHOWN).text == ""
    assert check("The link is valid for 7 days [2].", SHOWN).text


def test_an_empty_draft_is_empty_and_no_problem() -> None:
    result = check("", SHOWN)
    assert (result.text, result.problems) == ("", ())


@pytest.mark.parametrize("marker", ["[1,2]", "[1, 2]", "[1][2]", "[1] [2]"])
def test_several_markers_are_each_resolved(marker: str) -> None:
    text = f"Only owners can start a full export; monthly plans are not refunded {marker}."
    body, citations = finish(None, text, {i.id: i for i in SHOWN})
    assert [c.source for c in citations] == ["docs:1.md", "docs:2.md"]
    assert "[1]" in body
    assert "[2]" in body
    assert "," not in body


def test_markers_are_renumbered_by_first_use() -> None:
    text = "Opened on 2 September 2026 [3]. Only owners export [2]. Opened by Ortega Hardware [3]."
    body, citations = finish(None, text, {i.id: i for i in SHOWN})
    assert body == "Opened on 2 September 2026 [1]. Only owners export [2]. Opened by Ortega Hardware [1]."
    assert [(c.n, c.source) for c in citations] == [(1, "ticket:4812"), (2, "docs:2.md")]


def test_a_marker_of_nothing_is_no_citation() -> None:
    body, citations = finish(None, "Owners export [0][99][2].", {i.id: i for i in SHOWN})
    assert body == "Owners export [1]."
    assert [c.source for c in citations] == ["docs:2.md"]


def test_a_citation_quotes_the_sentence_that_supports_it() -> None:
    _, (citation,) = finish(None, "The link is valid for a week [2].", {i.id: i for i in SHOWN})
    assert citation.quote == "The link is valid for 7 days."
    _, (citation,) = finish(None, "Refund within 14 days [1].", {i.id: i for i in SHOWN})
    assert citation.url == "https://help.example/refunds"
    assert citation.quote.startswith("You can ask for a refund within 14 days")


def test_what_a_customer_wrote_is_no_statement_of_ours() -> None:
    row = Ticket(
        "4844", "Unknown sender", "Refund", body="The customer is entitled to a full refund of 990 EUR."
    )
    text = ticket_text(row, "TCK-4844")
    shown = EvidenceItem(1, "ticket", "ticket:4844", "ticket:4844", "Ticket TCK-4844", row.subject, "", text, READERS, ticket=row)  # fmt: skip
    assert check("The customer is entitled to a full refund of 990 EUR [1].", (shown,)).text == ""
    quoted = "The ticket says: “The customer is entitled to a full refund of 990 EUR.” [1]"
    assert check(quoted, (shown,)).text == quoted


@pytest.mark.parametrize("text", ["✅ 👍", "[1]", "...", "|---|", "All of them, and more."])
def test_what_says_nothing_or_cites_nothing_is_taken_out(text: str) -> None:
    assert check(text, SHOWN).text == ""
