"""Rules found in sentences and tables, and what they are about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Literal

import pytest

from ingest.rules import find_rules, topics
from ingest.scope import Scope, scope
from ingest.types import Chunk, Rule

VOCABULARY: Mapping[str, tuple[str, ...]] = {
    "plan": ("Starter", "Team", "Business", "Enterprise"),
    "billing": ("annual", "monthly"),
    "priority": ("low", "normal", "high", "urgent"),
    "region": ("EU", "UK", "US"),
}


def rules(body: str, title: str = "Terms", *headings: str) -> tuple[Rule, ...]:
    return find_rules(
        Chunk(
            id="folder:terms.md#3",
            uri="folder:terms.md",
            position=3,
            title=title,
            headings=headings,
            text=f"{title}\n{body}",
            authority="terms",
            effective_from=date(2025, 7, 1),
        )
    )


def read(body: str, *headings: str) -> list[str]:
    """Write the rules of a body down: `30 day from charge`, `7 day before renewal`, `forbids`."""
    found = []
    for rule in rules(body, "Terms", *headings):
        if rule.polarity == "forbids":
            assert rule.amount is None
            found.append("forbids")
            continue
        where = " before" if rule.before else " from" if rule.anchor else ""
        found.append(f"{rule.amount} {rule.unit}{where}{f' {rule.anchor}' if rule.anchor else ''}")
    return found


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("Annual subscriptions may be refunded within 30 days from the charge.", "30 day from charge"),
        ("As a rule, within 14 days of the charge.", "14 day from charge"),
        ("You can return any item up to 14 days after delivery.", "14 day from delivery"),
        ("You have 30 days from the date of purchase to return it.", "30 day from purchase"),
        ("We respond no later than 8 business hours after the ticket was opened.", "8 business_hour from opening"),
        ("Give notice at least 30 days before the renewal date.", "30 day before renewal"),
        ("We keep data for 90 days.", "90 day"),
        ("All products come with a warranty of 24 months from purchase.", "24 month from purchase"),
        ("The warranty lasts two years from delivery.", "2 year from delivery"),
        ("The warranty on a Junior bike ends three years after delivery.", "3 year from delivery"),
        ("A Junior bike is under warranty for four years, counted from delivery.", "4 year from delivery"),
        ("The return window is 6 business days from delivery.", "6 business_day from delivery"),
        ("Every plan has a 30-day money-back guarantee.", "30 day"),
        ("We offer a 14-day return window from receipt of the goods.", "14 day from delivery"),
        ("The notice period is three months.", "3 month before"),
        ("Termination requires 30 days' notice.", "30 day before"),
        ("Termination requires 30 days’ written notice.", "30 day before"),
        ("We will give notice of 60 days.", "60 day before"),
        ("Price changes are announced at least 60 days in advance.", "60 day before"),
        ("Invoices are payable within 45 days of the invoice date.", "45 day from invoice"),
        ("Deleted files are purged after 30 days.", "30 day"),
        ("Links expire after 24 hours.", "24 hour"),
        ("After 12 months of inactivity, accounts are deleted.", "12 month"),
        ("An invitation is valid for 5 days.", "5 day"),
        ("Backups are stored for two weeks.", "14 day"),
        ("The workspace is deleted 60 days after the end of the subscription.", "60 day from subscription"),
        ("The refund is paid within 10 business days after it was approved.", "10 business_day from approval"),
        ("Claims must reach us within a year of delivery.", "1 year from delivery"),
        ("We reply within 2 to 3 business days.", "3 business_day"),
        ("Refunds take between 5 and 10 days from approval.", "10 day from approval"),
        ("Payments are non-refundable except within 14 days of purchase.", "14 day from purchase"),
        ("Refunds are not given after 30 days from the charge.", "30 day from charge"),
        ("We cannot refund charges older than 60 days.", "60 day"),
        ("Invoices more than 90 days old cannot be credited.", "90 day"),
        ("Once 30 days have passed since your purchase, we can't offer you a refund.", "30 day from purchase"),
        ("If the charge is older than 180 days no refund is given at all.", "180 day"),
        ("You won't get a refund if you cancel after 14 days.", "14 day"),
        ("We process refunds within 5-7 business days of receiving the returned item.", "7 business_day from return"),
        ("We answer within 14 days after we receive your letter.", "14 day from receipt"),
        ("The period expires 14 days after you receive the goods.", "14 day from delivery"),
        ("Orders cancelled less than 48 hours before dispatch are not refundable.", "48 hour before shipping"),
        ("Las devoluciones se abonan en un plazo de 5 a 10 días hábiles.", "10 business_day"),
        ("No se aceptan devoluciones pasados 30 días desde la compra.", "30 day from purchase"),
        ("Cancellations made more than 7 days before the delivery are refunded in full.", "7 day before delivery"),
        ("If you ask within 14 days of the charge, it is refunded.", "14 day from charge"),
        ("You have fourteen (14) calendar days from receipt to withdraw.", "14 day from delivery"),
        ("Refunds may be requested within 30 days after we receive your cancellation.", "30 day from cancellation"),
        ("A password link is valid for 60 minutes.", "1 hour"),
        ("Changes of price are announced 30 days before they take effect.", "30 day before effect"),
        ("Los pagos anuales se reembolsan dentro de los 30 días siguientes al cargo.", "30 day from charge"),
        ("Puede devolver el producto en un plazo de 14 días desde la entrega.", "14 day from delivery"),
        ("Se puede solicitar hasta 30 días después de la compra.", "30 day from purchase"),
        ("Dispone de 14 días naturales para solicitar la devolución.", "14 day"),
        ("Conservamos los datos durante 90 días.", "90 day"),
        ("Garantía de 24 meses desde la compra.", "24 month from purchase"),
        ("La garantía es de dos años desde la entrega.", "2 year from delivery"),
        ("Respondemos en 8 horas laborables.", "8 business_hour"),
        ("Avise con al menos 15 días de antelación a la renovación.", "15 day before renewal"),
        ("El plazo de devolución es de 20 días hábiles a partir de la recepción.", "20 business_day from delivery"),
        ("Debe cancelar como mínimo 30 días antes de la renovación.", "30 day before renewal"),
    ],
)  # fmt: skip
def test_a_duration_in_a_rule_s_construction(sentence: str, wanted: str) -> None:
    assert read(sentence) == [wanted]


@pytest.mark.parametrize(
    "sentence",
    [
        "Monthly subscriptions are not refundable.",
        "Monthly subscriptions aren't refundable.",
        "Monthly subscriptions aren’t refundable.",
        "No refunds on monthly plans.",
        "There is no refund of monthly payments.",
        "Gift cards are non-refundable.",
        "Junior bikes cannot be returned.",
        "Junior bikes can't be returned.",
        "In the US, there is no warranty on Junior bikes.",
        "We do not refund monthly payments.",
        "Used items may not be returned.",
        "All sales are final.",
        "Starter customers are not entitled to service credits.",
        "Monthly billing is not offered on this plan.",
        "Payments for monthly subscriptions are not refundable, neither in whole nor in part.",
        "Las suscripciones mensuales no se reembolsan.",
        "Los pagos mensuales no son reembolsables.",
        "No hay reembolso en los planes mensuales.",
        "Las tarjetas regalo no se pueden devolver.",
        "Los clientes Starter no tienen derecho a créditos.",
        "Subscriptions may not be cancelled within the first 12 months.",
    ],
)
def test_a_prohibition_has_no_duration(sentence: str) -> None:
    assert read(sentence) == ["forbids"]


@pytest.mark.parametrize(
    "sentence",
    [
        "I waited 3 days.",
        "I wrote to you 3 days after the delivery.",
        "The company was founded 10 years ago.",
        "The webinar lasts 45 minutes.",
        "We have been in business for 20 years.",
        "Top it up every 8 weeks.",
        "You may start 5 exports a day.",
        "A full charge takes about 5 hours.",
        "If the target is missed twice in a calendar month, tell us.",
        "Our liability in any twelve months is limited to the fees of those twelve months.",
        "An annual subscription renews for a year.",
        "Your ticket was answered within 2 hours.",
        "My order was delivered 2 weeks after the purchase.",
        "Can I get a refund within 30 days of the charge?",
        "¿Puedo devolverlo en un plazo de 14 días?",
        "Some payments cannot be refunded at all.",
        "After that the payment is not refunded.",
        "No refund is given after this period.",
        "Where the item is shown as 'not refundable', ask us.",
        "If the charge is not refundable, we tell you.",
        "We cannot guarantee a reply within 8 hours.",
        "The meeting is 2 hours long.",
        "A battery that was left empty for more than 6 months can rarely be woken up.",
        "Invoices of the last 30 days are shown first.",
        "The version of 14 August 2026 adds ten reports.",
        "> Somebody told me I have 60 days from the charge.",
        "```\nretention: keep for 30 days\n```",
        "Espere 3 días.",
        "La empresa se fundó hace 10 años.",
        "Algunos pagos no se reembolsan.",
    ],
)
def test_what_is_no_rule(sentence: str) -> None:
    assert read(sentence) == []


def test_two_clauses_give_two_rules_with_their_own_words() -> None:
    found = rules(
        "Annual subscriptions may be refunded within 30 days of the charge; monthly subscriptions are not refundable."
    )
    assert [(rule.text, rule.amount, rule.polarity) for rule in found] == [
        ("Annual subscriptions may be refunded within 30 days of the charge", 30, "allows"),
        ("monthly subscriptions are not refundable.", None, "forbids"),
    ]


@pytest.mark.parametrize("joint", [", while ", ", whereas ", ", but ", " and ", "; "])
def test_clauses_with_subjects_of_their_own_are_split(joint: str) -> None:
    found = rules(
        f"Annual plans can be refunded within 30 days of the charge{joint}monthly plans are not refundable."
    )
    assert [rule.polarity for rule in found] == ["allows", "forbids"]
    assert scope(found[0], VOCABULARY).includes == {"billing": frozenset({"annual"})}
    assert scope(found[1], VOCABULARY).includes == {"billing": frozenset({"monthly"})}


@pytest.mark.parametrize(
    "sentence",
    [
        "Annual fees may be refunded within 30 days of the charge, and no refund is given after that.",
        "Annual fees may be refunded within 30 days of the charge, but not after that.",
        "Annual fees may be refunded within 30 days of the charge; after that day they are not refunded.",
        "Annual fees may be refunded within 30 days of the charge. Later requests are not accepted.",
        "Annual fees are refunded within 30 days of the charge and are not refundable thereafter.",
        "Annual fees are refunded within 30 days of the charge; after 30 days no refund is possible.",
        "Annual fees are refunded within 30 days of the charge. Once 30 days have passed, we can't refund them.",
    ],
)
def test_the_end_of_a_window_is_no_second_rule(sentence: str) -> None:
    assert read(sentence) == ["30 day from charge"]


def test_a_list_of_periods_gives_each_its_own_words() -> None:
    found = rules("Kept for 90 days on Team, 365 days on Business and 24 months on Enterprise.")
    assert [(rule.amount, scope(rule, VOCABULARY).includes["plan"]) for rule in found] == [
        (90, frozenset({"Team"})),
        (365, frozenset({"Business"})),
        (24, frozenset({"Enterprise"})),
    ]


def test_a_list_of_subjects_gives_each_its_own_period() -> None:
    found = rules("Annual plans have 30 days from the charge and monthly plans 7 days from the charge.")
    assert [(rule.amount, scope(rule, VOCABULARY).includes["billing"]) for rule in found] == [
        (30, frozenset({"annual"})),
        (7, frozenset({"monthly"})),
    ]


def test_reminders_before_one_day_are_two_rules() -> None:
    assert read("Owners receive reminders 30 and 7 days before the deletion.") == [
        "30 day before deletion",
        "7 day before deletion",
    ]


def test_a_section_that_says_what_its_periods_run_from() -> None:
    assert read("You have 30 days to ask for a refund. The period runs from the day of the charge.") == [
        "30 day from charge"
    ]
    assert read("Refunds are possible within 14 days. The day of the charge is day 0.") == [
        "14 day from charge"
    ]
    assert read("Puede devolverlo dentro de 14 días. El plazo corre desde la entrega.") == [
        "14 day from delivery"
    ]


def test_an_item_is_about_what_opens_its_list() -> None:
    found = rules(
        "For Team customers:\n\n- Annual: 30 days\n- Monthly: no refunds\n\nFor Business customers:\n\n- Annual: 45 days",
        "Refunds",
    )
    assert [(rule.amount, scope(rule, VOCABULARY).includes) for rule in found] == [
        (30, {"plan": frozenset({"Team"}), "billing": frozenset({"annual"})}),
        (None, {"plan": frozenset({"Team"}), "billing": frozenset({"monthly"})}),
        (45, {"plan": frozenset({"Business"}), "billing": frozenset({"annual"})}),
    ]


@pytest.mark.parametrize(
    ("sentence", "hedges", "conditions"),
    [
        ("As a rule, within 14 days of the charge.", ("as a rule",), ()),
        ("Usually you have 10 days from delivery.", ("usually",), ()),
        ("Por regla general se reembolsa dentro de 14 días.", ("por regla general",), ()),
        (
            "Fees may be refunded within 30 days of the charge if fewer than ten invoices were issued.",
            (),
            ("if fewer than ten invoices were issued",),
        ),
        (
            "Unless the order says otherwise, invoices are due within 30 days.",
            (),
            ("Unless the order says otherwise",),
        ),
        (
            "Items can be returned within 14 days provided that they are unused.",
            (),
            ("provided that they are unused",),
        ),
        ("It is refunded if you ask within 14 days of the charge.", (), ()),
        ("El plazo es de 30 días salvo pacto en contrario.", (), ("salvo pacto en contrario",)),
    ],
)
def test_hedges_and_conditions(sentence: str, hedges: tuple[str, ...], conditions: tuple[str, ...]) -> None:
    (rule,) = rules(sentence)
    assert rule.hedges == hedges
    assert rule.conditions == conditions


def test_a_prohibition_for_a_time_keeps_the_time_as_its_condition() -> None:
    (rule,) = rules("Subscriptions may not be cancelled within the first 12 months.")
    assert rule.conditions == ("within the first 12 months",)


def test_a_rule_carries_where_it_stands() -> None:
    (rule,) = rules("Refunds within 30 days of the charge.", "Team plan terms", "7. Refunds")
    assert rule.headings == ("Team plan terms", "7. Refunds")
    assert (rule.uri, rule.chunk, rule.authority) == ("folder:terms.md", "folder:terms.md#3", "terms")
    assert rule.effective_from == date(2025, 7, 1)


def test_emphasis_and_links_do_not_hide_a_rule() -> None:
    (rule,) = rules("**Annual** plans are refunded _within_ [30 days](https://x.example/30) of the charge.")
    assert rule.text == "Annual plans are refunded within 30 days of the charge."


TERMS_TABLE = """The period depends on how the subscription is billed:

| Billing | Refund window | Runs from |
|---|---|---|
| Annual | 45 days | the charge |
| Monthly | no refund | – |
"""


def test_a_row_is_written_out() -> None:
    annual, monthly = rules(TERMS_TABLE)
    assert annual.text == "Billing: Annual; Refund window: 45 days; Runs from: the charge"
    assert annual.labels == ("Refund window", "Billing: Annual", "Runs from: the charge")
    assert (annual.amount, annual.unit, annual.anchor) == (45, "day", "charge")
    assert (monthly.amount, monthly.polarity) == (None, "forbids")
    assert monthly.text == "Billing: Monthly; Refund window: no refund"


MATRIX = """The values are business hours from opening.

| Priority | Starter | Team | Business |
|:---|---:|---:|---:|
| Low | 36 business hours | 27 business hours | 18 business hours |
| Urgent | — | 3 business hours | **2 business hours** |
"""


def test_a_cell_of_a_matrix_is_about_its_row_and_column_only() -> None:
    found = rules(MATRIX, "Support service levels", "First response")
    assert len(found) == 5
    rule = found[3]
    assert (rule.amount, rule.unit, rule.anchor) == (3, "business_hour", "opening")
    assert rule.labels == ("Team", "Priority: Urgent")
    assert scope(rule, VOCABULARY).includes == {"plan": {"Team"}, "priority": {"urgent"}}
    assert "starter" not in topics(rule)


@pytest.mark.parametrize(
    ("header", "cell", "wanted"),
    [
        ("Notice", "30 days before the renewal date", ["30 day before renewal"]),
        ("Notice", "none", []),
        ("Notice", "none, until the day before renewal", []),
        ("Refund", "none", ["forbids"]),
        ("Return window", "cannot be returned", ["forbids"]),
        ("Warranty", "No", ["forbids"]),
        ("Phone support", "No", []),
        ("Refund window", "—", []),
        ("Refund window", "", []),
        ("Refund window (from delivery)", "14 days", ["14 day from delivery"]),
        ("Transit", "4 to 7 business days", ["7 business_day"]),
        ("Requests", "60 per hour", []),
        ("Renews for", "one year", []),
        ("Response", "1 hour, 24/7", ["1 hour"]),
        ("Users", "10", []),
        ("What to do", "Ask the bank; three more attempts follow over 10 days", []),
        ("Garantía", "24 meses", ["24 month"]),
        ("Reembolso", "no reembolsable", ["forbids"]),
    ],
)
def test_cells(header: str, cell: str, wanted: list[str]) -> None:
    assert read(f"| Billing | {header} |\n|---|---|\n| Annual | {cell} |") == wanted


def test_a_table_without_outer_pipes_and_with_an_escaped_one() -> None:
    found = rules("Plan | Refund window\n--- | ---\nTeam \\| annual | 30 days\n")
    assert [(rule.amount, rule.labels) for rule in found] == [(30, ("Refund window", "Plan: Team | annual"))]


@pytest.mark.parametrize(
    ("sentence", "headings", "includes"),
    [
        ("Refunds within 30 days.", ("Team plan terms",), {"plan": {"Team"}}),
        ("Your team has 30 days to ask.", ("Terms",), {}),
        ("Annual subscriptions: refunds within 30 days.", ("Team plan terms", "Refunds"), {"plan": {"Team"}, "billing": {"annual"}}),
        ("Subscriptions billed annually are refunded within 30 days.", (), {"billing": {"annual"}}),
        ("Refunds are due within one month.", (), {}),
        ("Business customers have 45 days to ask for it.", ("Team plan terms",), {"plan": {"Business"}}),
        ("Business days are counted; refunds within 30 days.", ("Terms",), {}),
        ("Refunds are paid within 10 Business Days.", ("Terms",), {}),
        ("Urgent and High priority tickets are answered within 2 hours.", (), {"priority": {"urgent", "high"}}),
        ("High tickets are answered within 2 hours.", (), {"priority": {"high"}}),
        ("A high number of tickets is answered within 2 hours.", (), {}),
        ("On any plan refunds are possible within 30 days.", ("Team plan terms",), {}),
        ("All plans: refunds within 30 days.", ("Team plan terms",), {}),
        ("In the EU, returns are possible within 14 days.", (), {"region": {"EU"}}),
        ("Tell us within 14 days.", (), {}),
        ("Refunds within 30 days.", ("Terms", "Team", "Annual billing"), {"plan": {"Team"}, "billing": {"annual"}}),
        ("Refunds within 30 days on Starter, Team, Business and Enterprise.", ("Terms",), {}),
        ("Los planes Team se reembolsan dentro de 30 días.", (), {"plan": {"Team"}}),
        ("Team members can ask for a refund within 30 days.", ("Terms",), {}),
    ],
)  # fmt: skip
def test_the_scope_of_a_rule(
    sentence: str, headings: tuple[str, ...], includes: Mapping[str, set[str]]
) -> None:
    rule = rules(sentence, *(headings or ("Terms",)))[-1]
    assert scope(rule, VOCABULARY).includes == includes


@pytest.mark.parametrize(
    "sentence",
    [
        "All plans except Enterprise can be refunded within 30 days.",
        "Plans other than Enterprise have 30 days to ask for a refund.",
        "Refunds within 30 days on all plans, with Enterprise as the exception.",
        "Refunds are possible within 30 days, excluding Enterprise.",
        "Todos los planes excepto Enterprise se reembolsan dentro de 30 días.",
    ],
)
def test_what_a_rule_leaves_out(sentence: str) -> None:
    (rule,) = rules(sentence)
    read_scope = scope(rule, VOCABULARY)
    assert read_scope.includes == {}
    assert read_scope.excludes == {"plan": {"Enterprise"}}
    assert read_scope.keys == 0


@pytest.mark.parametrize(
    ("facts", "fit"),
    [
        ({"plan": "Team", "billing": "annual"}, "applies"),
        ({"plan": "team", "billing": "Annual"}, "applies"),
        ({"plan": "Team", "billing": "monthly"}, "no"),
        ({"plan": "Starter"}, "no"),
        ({"plan": "Team"}, "unknown"),
        ({"plan": "Team", "billing": ""}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_whether_a_scope_fits(facts: dict[str, str], fit: Literal["applies", "unknown", "no"]) -> None:
    limited = Scope({"plan": frozenset({"Team"}), "billing": frozenset({"annual"})})
    assert limited.keys == 2
    assert limited.fits(facts) == fit
    assert Scope().fits(facts) == "applies"


def test_a_scope_that_leaves_a_value_out() -> None:
    limited = Scope(excludes={"plan": frozenset({"Enterprise"})})
    assert [limited.fits(facts) for facts in ({"plan": "Team"}, {"plan": "enterprise"}, {})] == [
        "applies",
        "no",
        "unknown",
    ]


def test_topics_are_stems_of_words_labels_and_headings() -> None:
    (rule,) = rules("Annual subscriptions may be returned within 30 days.", "Team terms", "Refunds")
    assert {"annual", "subscript", "return", "team", "refund"} <= topics(rule)
