"""What a question about a ticket really asks: suppositions, denials, other matters, fields; each was once answered wrongly."""

from __future__ import annotations

import pytest

from bot.app import Desk
from bot.types import PastTurn
from tests.desks import answer


@pytest.mark.parametrize(
    ("question", "decision", "says"),
    [
        # Suppositions: the answer is about what is supposed, and says so.
        ("If 4812 had been on Starter, would they get a refund?", "no", ["plan Starter instead of Team", "28 August"]),
        ("What if ticket 4812 paid monthly, entitled to a refund?", "no", ["billing monthly instead of annual"]),
        ("Had ticket 4836 been billed annually, would they get a refund?", "yes", ["billing annual", "1 October 2026"]),
        ("had 4841 been urgent, what target would apply?", "rule", ["priority urgent instead of high", "3 business hours"]),
        ("if 4812 had asked on 14 september would that be in time", "no", ["a request on 14 September 2026", "13 September"]),
        ("Suppose 4850 had asked two days earlier, would the refund be ok?", "yes", ["a request on 20 September 2026"]),
        ("Would 4377 have been in time a day later?", "no", ["a request on 23 March 2026"]),
        ("Would Lumen Estudio on 4847 get a refund if they asked on 8 October?", "no", ["8 October 2026", "7 October 2026"]),
        ("Is 4812 still in time today?", "no", ["a request on 26 September 2026", "the one on record came on 2 September 2026"]),
        ("if the customer in 4812 had been charged on 1 August instead, would they be in time?", "no", ["31 August 2026"]),
        # Denials and turned questions.
        ("Is 4812 not refundable?", "yes", ["No, it is in time"]),
        ("Can we refuse 4812?", "yes", ["No, it is in time"]),
        ("Isn't 4843 too late?", "yes", ["No, it is in time", "17 September 2026"]),
        ("¿Está fuera de plazo la devolución del 4850?", "no", ["Yes, it is past"]),
        ("Did we miss the target on 4816?", "yes", ["No, the target was met"]),
        ("Was the first reply on 4841 too late?", "no", ["Yes, the target was missed"]),
        ("Is it true that 4771 was refunded after the window had ended?", "yes", ["No, it is in time"]),
        ("Has the window for 4812 closed by now?", "yes", ["13 September 2026"]),
        # A date that is not the rule's is put right; a date's edge is the day beside it.
        ("Does the window of 4843 end on 18 September?", "yes", ["The last day is 17 September 2026, not 18 September 2026"]),
        ("Does the window of 4843 end on 17 September?", "yes", ["17 September 2026"]),
        ("Had 4182 been charged before 1 July 2025 on Team, would they get a refund?", "no", ["the charge on 30 June 2025", "21 days"]),
        # Without the words of the rule.
        ("So 4812 is not entitled to anything, right?", "yes", ["No, it is in time"]),
        ("is 4821 outside the window?", "no", ["31 August 2026"]),
        ("How much time does 4847 have left?", "due", ["7 October 2026"]),
        ("How many days of slack did 4843 have left", "yes", ["Until 17 September 2026"]),
        ("Does Gestoría Llopis get September back? See ticket 4836.", "no", ["not refundable"]),
        # A rule that names just this goes first.
        ("Is ticket 4613 within the refund window?", "yes", ["no time limit", "Duplicate charges"]),
        ("are invoice packs refundable on Business?", "no", ["invoice packs are not refundable"]),
        # The FAQ's number is put beside the terms.
        ("The FAQ says 14 days for refunds, does this hold for annual Team?", "rule", ["30 days from the charge"]),
        ("FAQ says 14 days so a monthly Business customer has 14 days, right?", "rule", ["7 days from the charge"]),
        # Dates in the question, no ticket.
        ("I paid for Enterprise annual on 30 July 2026, can I still get it back?", "yes", ["28 September 2026"]),
        # The record alone decides.
        ("Is 4812 still open?", "yes", ["status open"]),
        ("Is ticket 4845 closed?", "no", ["status open"]),
        ("Is 4855 assigned to Marc?", "yes", ["Marc Oliver"]),
        ("is 4850 a Team customer?", "no", ["plan Business"]),
        # The target, not the credit.
        ("What is the first response target for a normal Team ticket?", "rule", ["9 business hours"]),
        ("Was 4225 resolved on time?", "yes", ["the target was met"]),
    ],
)  # fmt: skip
async def test_the_verdict_is_about_what_was_asked(
    sample: Desk, question: str, decision: str, says: list[str]
) -> None:
    answered = await answer(sample, question)
    assert answered.verdict is not None, answered.text
    assert answered.verdict.decision == decision, answered.text
    for words in says:
        assert words in answered.text


@pytest.mark.parametrize(
    ("question", "beside"),
    [
        ("Is 4401's migration fee refundable too?", "migration"),
        ("Is 4812 entitled to a refund in cash to another card?", "cash"),
        ("would refunding 4812 close their workspace?", "workspace"),
        ("Who has to ask for the refund on 4812, can the bookkeeper do it?", "bookkeeper"),
        ("how long does the refund for 4812 take to arrive?", "arrive"),
    ],
)
async def test_what_the_rule_does_not_speak_of_gets_no_yes_and_no_no(
    sample: Desk, question: str, beside: str
) -> None:
    answered = await answer(sample, question)
    assert answered.verdict is not None
    assert answered.verdict.decision == "rule"
    assert not answered.text.startswith(("Yes", "No"))
    assert f"“{beside}”" in answered.text.partition("\n")[0]
    assert answered.shape == "partial"


@pytest.mark.parametrize(
    "question",
    [
        "How many users may the customer on 4812 have?",
        "May we close 4812?",
        "Does 4225 get a service credit?",
        "Is 4812 entitled to a service credit?",
        "Is 4812 allowed to raise their API limit?",
        "Has 4812 already been refunded?",
    ],
)
async def test_no_rule_of_another_matter_fills_a_gap(sample: Desk, question: str) -> None:
    answered = await answer(sample, question)
    assert answered.verdict is None, answered.text


@pytest.mark.parametrize(
    ("user", "question"),
    [
        ("", "Is the customer in ticket 9999 entitled to a refund?"),
        ("bob", "Is the customer on 4812 entitled to a refund?"),
        ("bob", "Is the customer on ticket 4812 entitled to a refund?"),
    ],
)
async def test_a_ticket_that_is_not_there_for_the_asker_gets_no_general_rule(
    sample: Desk, user: str, question: str
) -> None:
    answered = await answer(sample, question, user=user)
    assert answered.shape == "not_found"
    assert "There is no ticket" in answered.text


@pytest.mark.parametrize("question", ["is the refund still in time?", "Is he entitled?"])
async def test_a_question_that_points_at_nobody_is_asked_back(sample: Desk, question: str) -> None:
    assert (await answer(sample, question)).shape == "clarify"


@pytest.mark.parametrize(
    ("before", "question", "says"),
    [
        ("Is the customer on ticket 4812 entitled to a refund?", "And on monthly billing?", "billing monthly instead of annual"),
        ("Is the customer on ticket 4812 entitled to a refund?", "And if they had asked on 14 September?", "a request on 14 September 2026"),
        ("Is the customer on ticket 4812 entitled to a refund?", "who is assigned?", "Lucía Navarro"),
        ("Is the customer on ticket 4812 entitled to a refund?", "Same question for 4821", "31 August 2026"),
        ("What does ALB-1207 mean?", "and 1210?", "ALB-1210"),
        ("How many open tickets are there?", "which one is the oldest?", "status open"),
        ("How many users does Starter include?", "and how many invoices?", "Starter: 60"),
        ("What does ERR_SSO-4032 mean?", "has any customer had that?", "TCK-4330"),
    ],
)  # fmt: skip
async def test_a_follow_up_keeps_what_was_spoken_of(
    sample: Desk, before: str, question: str, says: str
) -> None:
    first = await answer(sample, before)
    tickets = tuple(dict.fromkeys(item.ticket.number for item in first.used if item.ticket))
    customers = tuple(dict.fromkeys(item.ticket.customer for item in first.used if item.ticket))
    past = PastTurn("1", before, first.standalone, first.text, first.shape, "", tickets, customers)
    assert says in (await answer(sample, question, history=(past,))).text


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("how much is team per month", "€29"),
        ("How much is Business annual now", "€790"),
        ("Do Team customers get phone support", "no telephone support"),
        ("how many legal entities does Business include", "Legal entities; Business: 5"),
        ("max export size", "4 GB"),
        ("Does the customer on 4852 get phone support?", "no telephone support"),
        ("how was 4182 resolved?", "Resolution:"),
    ],
)
async def test_a_plain_fact_in_short_words_is_found(sample: Desk, question: str, says: str) -> None:
    assert says in (await answer(sample, question)).text


async def test_a_follow_up_after_a_field_goes_on_with_what_was_decided(sample: Desk) -> None:
    past = (
        PastTurn("1", "Is 4812 entitled to a refund?", "Is 4812 entitled to a refund?", "Yes.", "answered", "", ("4812",), ("Ortega Hardware",)),
        PastTurn("2", "who is assigned?", "who is assigned (ticket TCK-4812)?", "Lucía", "answered", "", ("4812",), ("Ortega Hardware",)),
    )  # fmt: skip
    answered = await answer(sample, "And if they were monthly?", history=past)
    assert "billing monthly instead of annual" in answered.text


@pytest.mark.parametrize(
    ("question", "lead"),
    [
        ("did we blow the first reply on 4841?", "The target was missed."),
        ("did we meet the first reply on 4841?", "No, the target was missed."),
        ("was the first reply on 4841 too late?", "Yes, the target was missed."),
    ],
)
async def test_yes_and_no_are_said_only_to_words_that_are_known(
    sample: Desk, question: str, lead: str
) -> None:
    assert (await answer(sample, question)).text.startswith(lead)


@pytest.mark.parametrize("when", ["in May 2025", "on 12 May 2025"])
async def test_a_day_or_month_of_a_past_year_is_answered_from_the_texts_of_then(
    sample: Desk, when: str
) -> None:
    answered = await answer(sample, f"refund window for team annual charged {when}")
    assert answered.verdict is not None
    assert "21 days from the charge" in answered.verdict.text
    assert "request came" not in answered.verdict.text


async def test_an_sla_credit_is_no_question_of_whether_the_target_was_met(sample: Desk) -> None:
    answered = await answer(sample, "does blue heron have an sla credit for 4846?")
    assert "target was" not in answered.text


async def test_of_a_customers_tickets_the_one_with_the_act_that_is_asked_of_is_meant(sample: Desk) -> None:
    answered = await answer(sample, "Until what day can Lumen Estudio ask for a refund?")
    assert "7 October 2026" in answered.text
