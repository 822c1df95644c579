"""Rewriting: a follow-up made standalone from its thread, adding no name, number or date that is not in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date

from bot import prompts
from bot.filters.flags import is_flag, turned
from bot.gate import asks
from bot.reading.periods import spans
from bot.types import Budget, ChatModel, Gazetteer, Message, PastTurn, Question, Reply
from bot.verdict.topic import GENERIC
from ingest.atoms import atoms, codes, negated, same
from ingest.dates import format_date, relative_date
from ingest.errors import ModelError
from ingest.tickets import Mention
from ingest.words import mentions, stems, words

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}
_CUSTOMER = re.compile(
    r"\b(?:(?:the|that|this) same|the|that|this|mismo|misma|la misma|el mismo) "
    r"(?:shop|store|customer|client|company|account|business|firm|tienda|cliente|empresa)\b(?!\s+(?:on|of|in) )",
    re.IGNORECASE,
)
_THEY = re.compile(r"\b(?:they|them|he|she|him)\b", re.IGNORECASE)
_THEIR = re.compile(r"\b(?:their|theirs|his|her)\b", re.IGNORECASE)
_TICKET = re.compile(
    r"\b(?:(?:that|this|the same|same|the) (?:ticket|case|one|incident)|it)\b(?!\s+(?:that|which|from|of|the|opened by))",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:same|mism[oa]|others?|another|else|more|ones?|tickets?|cases?|opened|otr[oa]s?|casos?)\b",
    re.IGNORECASE,
)
"""Words of a question about a customer that leave the ticket of the thread."""
_CASE_OF = re.compile(
    r"(?:the (?:customer|client|buyer|shop) (?:on|of) )?(?:(?:ticket|case|incident) )?$", re.IGNORECASE
)
_THE_ONE = re.compile(r"\b(?:the|that) one\b", re.IGNORECASE)
_SAME = re.compile(r"\b(same|that|this|it|these|those|like it)\b", re.IGNORECASE)
_AMONG = re.compile(
    r"\b(which (one|ones|of (them|these|those))|of (them|these|those)|the (oldest|newest|latest|first|last)( one)?$|who has (them|most))\b|"
    r"^(?:(?:and|but|ok|okay|now|so|show|me|us)\b[ ,]*)*(?:only|just|solely)\b|\b(?:the|any|those) (?:[\w-]+ ){1,3}ones?\b|"
    r"\b(?:those|the ones|ones) (?:from|of|by|in|with|without|on|about|that|which|who|not|opened|closed|since|before|assigned)\b|"
    r"\b(?:sort|order|group|count) (?:them|these|those)\b|"
    r"^(?:(?:and|but)\b[ ,]*)?(?:which|how many) (?:are|were|is|was|have|has|had|came|do|did)\b",
    re.IGNORECASE,
)
"""What asks for some of the tickets that were listed before."""
_BEFORE = re.compile(
    r"^\W*(?:(?:and|ok|okay|what about)\b[ ,]*)*(?:the )?(?:(?:one|ticket|case) before|(?:previous|prior|next) (?:one|ticket|case))(?: (?:that|it|one|this))?\W*$",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?P<way>latest|newest|most recent|last|oldest|earliest|first)(?: (?P<n>\d\d?))?(?P<between> (?:\w+ ){0,3}?)(?P<noun>ticket|case)s?\b",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"^(?:(?:and|or|but|ok|okay|so|then|y|e)\b[ ,]*)*(?:(?:what|how) (?:about|if)|and|y|what of|(?:the )?same (?:question |thing )?for|for|but|is(?=\W*\S*\d\S*\W*$))\b",
    re.IGNORECASE,
)
_OF = re.compile(r"^\W*(?:(?:and|or|but|what)\b[ ,]*)*of\b", re.IGNORECASE)


LONGEST = 1500
"""Characters of a question; what is pasted beyond that is cut."""
_CODES = 20


def condensed(text: str) -> str:
    """Cut a pasted log to its beginning, its end and its codes, the commonest first: what a search can use of it."""
    if len(text) <= LONGEST:
        return text
    found = Counter(
        re.findall(r"\b(?=\w*[A-Za-z])(?=[\w-]*\d)[A-Za-z0-9]\w*(?:[-_]\w+)+\b|\b0x[0-9A-Fa-f]{4,}\b", text)
    )
    codes_ = [code for code, _ in found.most_common(_CODES)]
    return f"{text[: LONGEST // 2]} … {' '.join(codes_)} … {text[-LONGEST // 4 :]}"


async def standalone(
    question: Question,
    model: ChatModel,
    budget: Budget,
    names: Gazetteer,
    label: str,
    mentioned: Callable[[str], Sequence[Mention]],
) -> tuple[str, tuple[Reply, ...]]:
    """Return the question as it can be searched alone, and what the model said to it.

    A first question is returned as typed, with absolute dates, and no model is asked.

    The model's proposal is taken only if it adds and loses nothing; else the rewrite by rule; `mentioned` finds the ticket
    numbers in a text, as the company writes them, and `label` is what it writes before one.
    """
    asked = absolute(question)
    if not question.history:
        return asked, ()
    said: tuple[Reply, ...] = ()
    by_rule = follow_up(asked, question.history, names, label, mentioned, question.now.date())
    thread = "\n".join(f"Q: {turn.standalone}\nA: {turn.text}" for turn in question.history[-6:])
    ask = f"{thread}\nQ: {question.text}\nToday is {format_date(question.now.date())}."
    try:
        reply = await model.complete(
            [Message("system", prompts.REWRITE), Message("user", ask, now=question.now)],
            schema=SCHEMA,
            max_tokens=200,
            budget=budget,
        )
        budget.add(reply.usage)
        said = (reply,)
        proposal: object = json.loads(reply.text)["question"] if reply.text else ""
    except (ModelError, json.JSONDecodeError, KeyError, TypeError):
        proposal = ""
    if not isinstance(proposal, str) or not proposal.strip():
        return by_rule, said
    # Nothing may be lost either: "and 4821?" is not about the ticket before it, nor "in time?" about the refund.
    lost = adds(asked, proposal) or set(stems(asked)) - GENERIC - set(stems(proposal))
    turned = negated(proposal) and not negated(asked) and not negated(by_rule)
    if lost or turned or len(proposal) > LONGEST or adds(proposal, f"{ask}\n{by_rule}"):
        return by_rule, said
    return proposal.strip(), said


def adds(proposal: str, known: str) -> str:
    """Return the first number, date, id or name of the proposal that is not in what is known, or an empty string."""
    before = atoms(known)
    for atom in atoms(proposal):
        if not any(same(atom, other) or atom.value == other.value for other in before):
            return atom.text
    folded = set(words(known))
    for name in re.findall(r"(?<=\w )[A-ZÁÉÍÓÚÑ][\w'’-]+", proposal):
        if not set(words(name)) <= folded:
            return str(name)
    return ""


def absolute(question: Question) -> str:
    """Replace "yesterday" and its kin by dates, read on the desk's clock."""
    text = question.text
    for phrase, start, end in reversed(relative_date(text, question.now.date())):
        at = text.casefold().rfind(phrase.casefold())
        said = (
            f"on {format_date(start)}"
            if start == end
            else f"between {format_date(start)} and {format_date(end)}"
        )
        if at >= 0:
            text = text[:at] + said + text[at + len(phrase) :]
    return re.sub(r"\b(on|in|since) (on|between) ", r"\2 ", text)


def follow_up(
    text: str,
    history: Sequence[PastTurn],
    names: Gazetteer,
    label: str,
    mentioned: Callable[[str], Sequence[Mention]],
    today: date,
) -> str:
    """Fill a follow-up's references from the thread by rule: the same shop, that ticket, "and for Business?"."""
    # After a look at a field ("who is assigned?") a bare follow-up goes on with what was decided before.
    last = history[-1]
    numbers = _numbers(text, last.standalone, mentioned)
    if "field" in asks(last.standalone) and not _OF.match(text):
        last = next((turn for turn in reversed(history) if "rule" in asks(turn.standalone)), last)
    about = next((turn for turn in reversed(history) if turn.customers), None)
    customer = about.customers[-1] if about else ""
    ticket = next((turn.tickets[-1] for turn in reversed(history) if turn.tickets), "")
    values = {value for options in _spoken(names) for value in options}
    out = text
    if customer and not mentions(text, names.customers):
        # On a desk with a Business plan, "the Business plan" is no customer.
        out = _CUSTOMER.sub(lambda said: said.group() if mentions(said.group(), values) else customer, out)
    if _ELLIPSIS.match(text) and out == text and len(words(text)) <= 10:
        swapped = _swap(text, last.standalone, names, numbers, label, mentioned)
        if not swapped and not numbers:
            swapped = _in_other_days(text, last.standalone, today)
        if swapped:
            return swapped
    said = asks(text)
    if (
        "similar" in said
        and not numbers
        and not _CUSTOMER.search(text)
        and _SAME.search(text)
        and (what := _matter(history, label))
    ):
        return f"{text.rstrip(' ?.')}: {what}"
    if "aggregate" in asks(last.standalone) and not numbers:
        if _BEFORE.match(text) and (more := _one_more(last.standalone)):
            return more
        if _AMONG.search(text):
            return f"{text.rstrip(' ?.')}, of: {_without(last.standalone, text, names, today)}"
    held = [value for options in _spoken(names) for value in mentions(last.standalone, options)]
    if (
        _ELLIPSIS.match(text)
        and held
        and not numbers
        and not any(mentions(text, [value]) for value in values)
    ):
        return f"{text.rstrip(' ?.')} for {' '.join(held)}?"
    if out != text:
        out = _THE_ONE.sub("the ticket", out)
        stays = about and ticket in about.tickets[-1:] and not numbers and not _ELSEWHERE.search(text)
        return f"{out} (ticket {label}{ticket})" if stays and not said & {"aggregate", "similar"} else out
    if customer and re.search(r"\btickets\b", text, re.IGNORECASE) and not mentions(text, names.customers):
        return re.sub(r"\b(?:it|they|them)\b", customer, out, count=1, flags=re.IGNORECASE)
    if customer and ticket and not numbers and _THEY.search(out):
        return _THEY.sub(customer, out, count=1) + f" (ticket {label}{ticket})"
    if ticket and not numbers:
        filled = _TICKET.sub(f"ticket {label}{ticket}", out, count=1)
        if filled != out:
            return filled
        if customer and _THEIR.search(out):
            return _THEIR.sub(f"{customer}'s", out, count=1) + f" (ticket {label}{ticket})"
    if ticket and not numbers and said == {"field"} and len(words(out)) <= 8:
        return f"{out.rstrip(' ?.')} (ticket {label}{ticket})?"
    own = [stem for stem in stems(out) if stem not in {s for value in values for s in stems(value)}]
    if not numbers and (len(own) <= 1 or (ticket and set(stems(out)) <= GENERIC)) and len(words(out)) <= 8:
        return f"{last.standalone.rstrip(' ?.')}: {out}"
    return out


def _matter(history: Sequence[PastTurn], label: str) -> str:
    """Return what "the same" means in a thread: the last ticket, or the last code, that was spoken of."""
    for turn in reversed(history):
        if found := codes(turn.standalone):
            return max(found, key=len)
        if turn.tickets:
            return f"{label}{turn.tickets[-1]}"
    return ""


def _spoken(names: Gazetteer) -> list[Sequence[str]]:
    """Return the values of each facet that people say; "no" and "true" are words of any sentence."""
    return [values for values in names.facets.values() if not is_flag(values)]


def _numbers(text: str, before: str, mentioned: Callable[[str], Sequence[Mention]]) -> list[str]:
    """Return the tickets that a follow-up names; after a question about one, "and 78?" is one, however short."""
    numbers = [mention.number for mention in mentioned(text)]
    if numbers or not mentioned(before):
        return numbers
    rest = _ELLIPSIS.sub("", text, count=1).strip(" ,?.!")
    return [mention.number for mention in mentioned(f"#{rest}") if mention.end == len(rest) + 1]


def _swap(
    text: str,
    before: str,
    names: Gazetteer,
    numbers: Sequence[str],
    label: str,
    mentioned: Callable[[str], Sequence[Mention]],
) -> str:
    """Ask the last question again with the ticket, facet value or customer that the follow-up names instead."""
    if numbers:
        if held := mentioned(before):
            swapped = f"{before[: held[0].start]}{label}{numbers[-1]}{before[held[0].end :]}"
        else:
            # In a code ("ALB-1207") only the digits are swapped, and a code named whole stands for itself.
            swapped = re.sub(r"(\b[A-Z][A-Z0-9]*[-_])\d+\b", rf"\g<1>{numbers[-1]}", before, count=1)
        return swapped if swapped != before else ""
    out = _of_others(text, turned(text, before, names), names)
    for values in (*_spoken(names), names.priority, names.status, names.customers):
        named = mentions(text, values)
        old = mentions(before, values)
        if named and values is names.customers and not old:
            for mention in mentioned(out)[:1]:
                lead = _CASE_OF.search(out[: mention.start])
                out = f"{out[: lead.start() if lead else mention.start]}{named[0]}{out[mention.end :]}"
            continue
        if named and old:
            out = re.sub(rf"\b{re.escape(old[0])}\b", named[0], out, flags=re.IGNORECASE)
        elif named:
            # Beside a ticket another value is a supposition; else it narrows the question.
            about = "if it were" if mentioned(before) else "for"
            out = f"{out.rstrip(' ?.')} {about} {' '.join(named)}?"
    return out if out != before else ""


def _of_others(text: str, before: str, names: Gazetteer) -> str:
    """Return a question with the customer and the colleague that another text names, each known by a part, too."""
    for known in (names.customers, names.assignees):
        new, old = _named(text, known), _named(before, known)
        if new and old and set(new.values()).isdisjoint(old.values()):
            said = "|".join(map(re.escape, sorted(old, key=len, reverse=True)))
            before = re.sub(
                rf"\b(?:{said})\b", next(iter(new.values())), before, count=1, flags=re.IGNORECASE
            )
    return before


def _named(text: str, known: Sequence[str]) -> dict[str, str]:
    """Return how a text writes each name that it means: wholly, or by a first word that only one of them has."""
    if whole := mentions(text, known):
        return {name: name for name in whole}
    firsts: dict[str, list[str]] = {}
    for name in known:
        firsts.setdefault(name.split()[0], []).append(name)
    return {
        first: options[0]
        for first, options in firsts.items()
        if len(options) == 1 and len(first) > 2 and stems(first) and mentions(text, [first], strict=True)
    }


def _in_other_days(text: str, before: str, today: date) -> str:
    """Ask for a list of tickets again with the days that a follow-up names: "and in March?"."""
    if "aggregate" not in asks(before) or not (named := spans(text, today)):
        return ""
    said = text[named[0].start : named[0].end]
    if old := spans(before, today):
        return f"{before[: old[0].start]}{said}{before[old[0].end :]}"
    return f"{before.rstrip(' ?.')} {said}?"


def _without(before: str, text: str, names: Gazetteer, today: date) -> str:
    """Return a question for a list without what a follow-up says instead: another value of a field, other days."""
    before = _of_others(text, turned(text, before, names), names)
    for values in (*_spoken(names), names.priority, names.status):
        named = mentions(text, values)
        for old in mentions(before, values) if named else ():
            before = re.sub(rf"\b{re.escape(old)}\b", named[0], before, flags=re.IGNORECASE)
    if spans(text, today):
        for span in reversed(spans(before, today)):
            before = f"{before[: span.start].rstrip()} {before[span.end :].lstrip()}".strip()
    return before


def _one_more(before: str) -> str:
    """Return a question for the latest tickets with one more of them, whose last is the one before."""

    def more(match: re.Match[str]) -> str:
        return f"{match['way']} {int(match['n'] or 1) + 1}{match['between']}{match['noun']}s"

    made = _FIRST.sub(more, before, count=1)
    return made if made != before else ""
