"""The gate: is there anything to search for, and is one search enough; from the words and from what the first hop showed.

The rules follow "routing without a language model" of adaptive retrieval (arXiv 2505.04253): closed-set meta requests
first, then evidence features after a cheap first search. Unsure goes to the loop: one more hop costs one search.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.evidence import Evidence
from bot.types import Route
from ingest.atoms import UNITS, codes
from ingest.words import mentions, stems, words

Meta = Literal["prompt", "greeting", "thanks", "help", "sources", "summary", "goodbye", "about"]
Ask = Literal["rule", "compare", "aggregate", "similar", "field"]

_META: Mapping[Meta, re.Pattern[str]] = {
    "greeting": re.compile(
        r"(hi|hiya|hello|hey|hallo|hola|yo|good (morning|afternoon|evening|day)|buenos dias|buenas( tardes| noches)?|"
        r"how are you( doing)?( today)?|how is it going|hows it going|whats up|sup|are you there|you there|"
        r"nice to meet you|que tal|morning|welcome back|ping|test|testing)"
    ),
    "thanks": re.compile(
        r"(thanks?|thank you|thx|ty|cheers|merci|gracias|muchas gracias|much appreciated|appreciate it|"
        r"(that|this) (helps|helped|is helpful|was helpful|worked|works)|that is all|thats all|"
        r"(great|good|nice|perfect|awesome|excellent|brilliant|amazing) ?(job|work|answer|bot|stuff)?|got it|"
        r"(ok|okay|cool|understood|makes sense|no worries|lol|haha|wow|you rock|youre the best|well done|genial|vale))"
    ),
    "goodbye": re.compile(
        r"(bye|bye bye|goodbye|see you( later| tomorrow)?|cu|later|adios|hasta luego|good ?night|have a (nice|good|great) \w+)"
    ),
    "help": re.compile(
        r"(help|help me|ayuda|usage|commands|menu|start|what can you do( for (me|us))?|what do you do|how do you work|"
        r"how does this work|how do i use you|how (can|do) (i|we) use (you|this bot|this)|what can (i|we) ask( you)?|"
        r"que (puedes|sabes) hacer|como (funcionas|te uso)|can you help( me| us)?|i need (some )?help)"
    ),
    "sources": re.compile(
        r"(what do you know( about)?|(what|which) (sources|documents|docs) (do you (have|know|use|read)|are there)|"
        r"(list|show)( me)?( your| the| all)* (sources|documents|docs)|(which|what) (sources|documents|docs) can you (read|search|see)|"
        r"where do(es)? your (answers|information|knowledge) come from|que sabes|"
        r"how (fresh|recent|up to date|current) (is your (data|information|knowledge|index)|are your (sources|documents)))"
    ),
    "about": re.compile(
        r"(who are you|what are you|are you (a )?(bot|robot|human|real|an ai|ai|chatgpt|a person)|whats your name|"
        r"what is your name|quien eres|tell me a joke|do you (sleep|dream|have feelings|like (me|us))|i love you|who made you|(i am|im) (so |very |really )?(annoyed|angry|bored|happy|lonely|sleepy|tired|sad|sorry|back)|"
        r"(you are|youre) (so |very |really )?\w+|do you (love|hate|like) \w+|i hate you|are you (busy|happy|my \w+|there|dumb)|"
        r"(can|could) (you hear me|we chat)|talk to me|anyone there|what is wrong with you|how was your day|excuse me|"
        r"who (built|created) you|how old are you|(do|can) you (speak|understand|read) \w+|(what|which) languages? do you (speak|understand|read)|"
        r"hablas \w+|entiendes \w+)"
    ),
    "prompt": re.compile(
        r"(?:(?:please |now )*(?:ignore|disregard|forget|print|show|reveal|repeat|tell me)\b.*\b(?:your|the|all|previous|above) "
        r"(?:\w+ )?(?:system prompt|prompt|instructions|rules))(?: .*)?"
    ),
    "summary": re.compile(
        r"((can|could|would) you )?(summari[sz]e|sum up|recap|tl ?dr|give (me|us) (a |the )?(summary|recap)( of)?|resume|resumen|summary)"
        r"( what (we|weve|you)( have| ve)?( been)? (talk(ing|ed)|discuss(ing|ed)|said|found)( about)?( so far)?|"
        r"( of)?( this| the| our| all of this| everything| it)*( thread| conversation| discussion| chat)?( so far)?| this| it| de este hilo)*"
    ),
}
_POLITE = re.compile(
    r"\b(please|pls|plz|por favor|there|team|all|everyone|folks|guys|twohop|bot|so much|very much|a lot|a ton|again|"
    r"for (that|this|the help|your help|the info|everything|the quick answer|now)|then|just|well|oh|ah|um|ok(ay)?)\b"
)


def _set(words_: str) -> frozenset[str]:
    return frozenset(words_.split())


_FRAMES: Mapping[Meta, tuple[frozenset[str], frozenset[str]]] = {
    "summary": (
        _set("summarise summarize summary sum recap tldr resume resumen resumir covered discussed"),
        _set(
            "can could would you give me us a an the of this that our thread conversation chat discussion what we have ve been so far "
            "up for please short quick brief everything above talked about in is make do it all until now hilo este esta el la de "
            "conversacion un breve"
        ),
    ),
    "sources": (
        _set("documents document docs sources source knowledge info information data documentos fuentes"),
        _set(
            "what which where do does did you your yours have know use using read see can are is working work from come comes list show me all "
            "the of how fresh recent current up to date old last updated when were was been it get got que cuales conoces tienes sabes "
            "lees usas tus answers on based in there any"
        ),
    ),
    "help": (
        _set("ask answer help questions things ayudar preguntar"),
        _set(
            "what sort kind kinds sorts of can i we you about do with me us how use this bot work does for should could may the to in que "
            "puedo preguntarte te en puedes know"
        ),
    ),
}
"""A meta request may be worded freely as long as it has a core word and nothing but the words of its frame."""
_THANKS_WORD = re.compile(
    r"\b(thanks?|thx|ty|cheers|gracias|merci|perfect[oa]?|great|brilliant|appreciated?|awesome|got it|super)\b"
)
_CLOSING = frozenset(
    stems(
        "thanks thank thx ty cheers gracias merci perfect perfecto perfecta great brilliant appreciate awesome got it super ok okay cool nice "
        "good helped helps helpful works worked did needed exactly everything mate all now tell customer let know will quick answer help lot "
        "much team folks day clear that's right wonderful lovely amazing muchas mucho todo vale genial"
    )
)


def small_talk(text: str) -> Meta | None:
    """Return which meta request the whole message is, or None; a greeting before a question is a question."""
    plain = " ".join(words(re.sub(r"['’]", "", text)))
    if not plain:
        return "help"
    if any(character.isdigit() for character in plain):
        return None
    bare = " ".join(_POLITE.sub(" ", plain).split())
    for candidate in dict.fromkeys((plain, bare)):
        for meta, pattern in _META.items():
            if re.fullmatch(rf"(?:{pattern.pattern})", candidate):
                return meta
    if not bare:
        return "thanks" if re.search(r"\bok(ay)?|well\b", plain) else "greeting"
    said = plain.split()
    for meta, (core, frame) in _FRAMES.items():
        if core & set(said) and set(said) <= core | frame and len(said) > 1:
            return meta
    thanked = _THANKS_WORD.search(plain)
    if thanked and "?" not in text and not set(stems(plain)) - _CLOSING:
        return "thanks"
    parts = [part for part in re.split(r"[,.!?;:\n]+|\band\b", text) if words(part)]
    found = [small_talk(part) for part in parts] if len(parts) > 1 else [None]
    return next((meta for meta in reversed(found) if meta), None) if all(found) else None


_ASKS: Mapping[Ask, re.Pattern[str]] = {
    "rule": re.compile(
        r"\b(entitled?|if \S+ (\S+ )?(\S+ )?(had )?(asked|requested|claimed)|how many (\w+ )?(days|hours) (late|early|left|too late)|would (a|the|their|any) (\w+ )?(request|claim|refund|return)|(last|final|latest) (day|date)|obliged|oblig\w+|targets?|(get|gets|have|receive) (\w+ ){0,4}back|how (fast|soon|quickly)|in force|eligible|eligibility|qualif(y|ies)|allowed|permitted|may (i|we|they|the|he|she|a)|deadline|due|window|"
        r"how (long|many (business |working |calendar )?(days|hours|weeks|months))|how much time|by when|until when|when (does|do|did|is|will|must|should|can) "
        r".*(expire|end|close|lapse|due|respond|reply|over|run out|ship|return|cancel|claim)|(too|so) late|slack|outside|in time|on time|still|"
        r"(can|could|should|do|does|did|will|would|is|are|was|has|have) .*\b(refund\w*|return\w*|cancel\w*|exchange\w*|claim\w*|"
        r"covered|cover|warrant\w*|credit\w*|compensat\w*|reimburs\w*|money back|owed?|get (it|them|their)|valid|overdue|breach\w*|"
        r"refuse[ds]?|deny|miss(ed)?|met|meet|expired?|respond(ed)?|response|answered|within)|notice|penalt\w+|sla|policy|rule|applies|apply|"
        r"(does|do|is|would) (this|that|it|the same)( also| then| still)? (hold|true|apply|so|valid|count)|rights?|derecho|plazo|reembols\w*|puede|garantia|devol\w*)\b"
    ),
    "compare": re.compile(
        r"\b(compare[ds]?|comparison|versus|vs|differ(s|ence|ences|ent)?|better|cheaper|longer|shorter|higher|faster|more expensive|rather than|"
        r"which (plan|product|one|of the)|between (?!\d).* and|both|each (plan|product)|all (the )?(plans|products)|"
        r"across (the )?(plans|products)|diferencia\w*|comparar?)\b"
    ),
    "aggregate": re.compile(
        r"\b(how many( \w+){0,4} (tickets|cases|incidents|complaints|claims|(refund|return|exchange|cancellation|change|feature|service|support) requests)|number of (\w+ ){0,3}(tickets|cases|claims)|"
        r"how many (\w+ ){0,3}(customers|clients|shops|refunds|returns) (\w+ ){0,2}(asked|ask|have|had|opened|wrote|write|requested|requests|claimed|did|were|wanted|want)|"
        r"which (\w+ ){0,6}(tickets|cases)|que (\w+ ){0,2}(tickets|casos|incidencias)|(lista|muestra\w*|dame) (\w+ ){0,3}(tickets|casos|incidencias)|"
        r"count( of)? |(list|show)( me| us)? (?!how )(\w+ ){0,2}(tickets|cases)|cases (opened|created|closed|resolved|updated|assigned)|"
        r"(list|show|give)( me| us)? (all|every|the|open|any|our|\w+ tickets)|(which|what) (\w+ ){0,3}(tickets|cases|"
        r"incidents|claims)|tickets (opened|are|were|by|from|for|with|on|assigned|in|about|do|does|updated|changed|created|closed|resolved|mention\w*|that|which|without|not|older|since|between|waiting|asking)|(open|pending|resolved|closed|"
        r"unassigned|urgent) (tickets|cases|claims)|most (often|tickets|common)|who has (the )?(most|fewest)|oldest|newest|latest|"
        r"last \d* ?(tickets|cases)|any (open|other|pending|new) (tickets|cases)|cuant[oa]s (\w+ ){0,3}(tickets?|casos|incidencias|solicitudes|reclamaciones|devoluciones|reembolsos|clientes))\b"
    ),
    "similar": re.compile(
        r"\b((similar|like|comparable|related) (tickets?|cases?|issues?|problems?|to)|(tickets?|cases?|anything|something|one) (like|similar)|"
        r"(seen|had|have|happen(ed|s)?|reported|solved|fixed|handled|dealt with|come up|came up|came across) (\S+ ){0,10}(before|previously|in the past|earlier|already)|"
        r"precedents?|old(er)? (tickets?|cases?)|(any|a|has any|other|another) (customers?|clients?|shops?) (\S+ )?(had|have|having|with|reported|seen|got)|"
        r"(happen|happened|happens|happening) (to|with) (others?|anyone|anybody|somebody|someone|other)|duplicates? of|resembl\w+|"
        r"(anyone|anybody|somebody|someone|any customer) else|(earlier|other|past|previous) (customers?|tickets?|cases?)|known issue|same (error|problem|issue|symptom|fault|cause)|how did we (fix|solve|resolve|handle)(?! (the )?(ticket|case)?\W*\S*\d{3,})|"
        r"similares|parecid\w+)\b"
    ),
    "field": re.compile(
        r"\b((what|which) (plan|billing|status|priority|product|region|tier)|status of|who (is|owns|handles|was)|assigned|assignee|"
        r"when was|what (is|was|does|did|happened)|opened|about)\b"
    ),
}


_PEOPLE = r"(?:customers?|clients?|shops?|accounts?|companies|buyers?|agents?|assignees?|colleagues?|who)"
_LISTED = re.compile(
    # Customers with a number of tickets, and customers counted.
    rf"^(?!(?:do|does|can|could|may|is|are|should|must|will|would|if)\b).*\b{_PEOPLE} (?:"
    r"(?:\w+ ){0,5}?(?:(?:more|fewer|less) than|over|under|at least|at most|exactly|only|\w+ or more) (?:\w+ ){1,4}?"
    r"(?:tickets?|cases?|requests?|claims?)\b|.*\b(?:more than|at least) (?:once|twice)\b|.*\b(?:in total|altogether|overall)\b)"
    rf"|\bhow many (?:\w+ ){{0,3}}{_PEOPLE} are (?:there|on|in|from|with)\b"
    r"|\bhow many (?:\w+ ){1,4}ones\b|\b(?:any|did \w+ (?:not )?\w+) (?:\w+ ){0,2}(?:tickets|cases)(?! (?:in|where)\b)"
    r"|\bwho (?:\w+ ){1,3}?(?:most|fewest) (?:\w+ ){0,2}?(?:tickets|cases)\b|\bwho did we (?:not )?(?:answer|reply|respond|refund|help)\b"
    rf"|\b(?:which|what) (?:\w+ ){{0,2}}{_PEOPLE} (?:\w+ ){{0,2}}(?:asked|requested|opened|claimed|wrote|reported|complained|returned|cancelled)\b"
    # Tickets named as a list's head is: "cases where a return was requested".
    r"|^(?!.*\b(?:similar\w*|like|resembl\w+|comparable|related|parecid\w+)\b)"
    r"(?!(?:do|does|did|is|are|can|could|may|must|should|how|when|why|where|will|would|have|has|in|for|if|most|some|please|to)\b)"
    r"(?:\w+ ){0,3}?(?:tickets|cases|incidents)\b(?! (?:in which|is|are|count|counts|get|can|may|must|should|will|have to|cost|need to)\b)"
    r"(?!.*\b(?:what|how|can|may|should) (?:we|i|they|you|happens|do|does|is|are|the)\b)"
)
"""Further ways to ask for a list or a count."""
_MET = re.compile(
    r"\bwho(?: else)? (?:has|have) (?:\w+ ){0,2}?(?:had|got|gotten|hit|seen|met|reported|run into|experienced|encountered|complained)\b"
    r"|\bwho else (?:\w+ ){0,2}?(?:had|has|got|gets|hit|saw|sees|met|reported|ran into|runs into|experienced|encountered|complained)\b"
    r"|\b(?:has|have|did|does) (?:anyone|anybody|someone|somebody|any (?:customer|client|shop)|(?:any )?other (?:customers|clients|shops))(?: else)? "
    r"(?:\w+ ){0,2}?(?:had|have|got|get|hit|seen|see|met|meet|reported|report|run into|experienced|encountered|encounter|complained|complain)\b"
)
"""Who met something: the tickets that name its code, else those that resemble it."""
_ITS_PROBLEM = re.compile(r"\b(?:of|as|on|in|like) \w+ \d+|\b(?:tickets?|cases?) (?:\w+ )?\d")
"""The code is a ticket's number: "the problem of TCK-4849"."""
_OBJECT = re.compile(
    r"\b(?:for|to|on|in) (?:\w+ ){0,3}?(?:tickets|cases)\b"
    r"|^how (?:fast|soon|quickly|much time|many (?:\w+ )?(?:minutes|hours|days|weeks)) .*?(?:tickets|cases)\b"
)
"""Tickets that a rule is about: "the first response for urgent tickets"."""

STATE = re.compile(
    r"\balready\b(?! (over|too|late|past|expired|lapsed|out))|"
    r"\b(has|have|was|were) (\S+ ){1,6}?(been )?(paid|refunded|reimbursed|credited|sent|returned|shipped|delivered|resolved|fixed|solved|"
    r"closed|answered|approved)\b"
)
"""Words that ask what became of something: the record says, no rule does."""
RECORD = frozenset(
    stems(
        "subject body resolution resolve solve fix happen open opened opening owner owns handle problem issue about summary latest last update "
        "updated status priority assignee assigned message text written wrote reported say state"
    )
)
"""Words that ask about a ticket itself."""
TIMED = re.compile(
    r"\b(in time|on time|late|within|too|overdue|fast enough|entitled|eligible|allowed|window|deadline|supposed)\b"
)
"""Words that ask whether something was in time."""


_COUNTING = (["how", "many"], ["number", "of"])
_BETWEEN = 5
"""Words behind "how many" among which what is counted stands."""
_HAPPENED = re.compile(
    r"^(?:and |so |but )?when (?:did|was|were)\b(?!.*\b(?:expired?|ended?|clos(?:e|ing)|laps(?:e|ed)|due|run out|last|latest)\b)"
)
"""When something took place: the record says, no rule does."""


def measured(text: str) -> str:
    """Return the words with "how long" for a number of units of time, which counts neither tickets nor people.

    What is counted is the first plural behind "how many": of "how many more business days do customers have" the days,
    of "how many customers have 30 days" the customers.
    """
    said = list(words(text))
    for at in reversed(range(len(said))):
        behind = 1 if said[at] in ("cuantos", "cuantas") else 2 if said[at : at + 2] in _COUNTING else 0
        counted = said[at + behind : at + behind + _BETWEEN] if behind else []
        plural = next((i for i, word in enumerate(counted) if word[-1:] == "s" != word[-2:-1]), None)
        if plural is not None and counted[plural] in UNITS:
            said[at : at + behind + plural + 1] = ["how", "long"]
    return " ".join(said)


def asks(text: str) -> frozenset[Ask]:
    """Return what kinds of thing the words ask for; none is common and means a look-up in the documents."""
    plain, counted = " ".join(words(text)), measured(text)
    found = frozenset(
        ask for ask, pattern in _ASKS.items() if pattern.search(counted if ask == "aggregate" else plain)
    )
    if _LISTED.search(counted):
        found |= {"aggregate"}
    elif found & {"compare", "rule"} and not _ASKS["aggregate"].search(_OBJECT.sub(" ", counted)):
        found -= {"aggregate"}
    if _MET.search(plain):
        by_code = codes(text) and not _ITS_PROBLEM.search(plain)
        found = found - {"rule"} | {"aggregate" if by_code else "similar"}
    if _HAPPENED.search(plain) and not TIMED.search(plain):
        found = found - {"rule"} | {"field"}
    if found & {"rule", "field"} and STATE.search(plain) and not TIMED.search(plain):
        return found - {"rule"} | {"field"}
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """What the gate sees: the question's words, and the first hop's evidence."""

    text: str
    vocabulary: Mapping[str, Collection[str]]
    """Facet name to values."""
    evidence: Evidence
    disagree: bool = False
    """Sources state different values for what is asked."""
    named: Sequence[str] = field(default_factory=tuple)
    """Tickets named in the question."""


def route(reading: Reading) -> Route:
    """Return `direct` where the first hop can answer, else `agent`, with every reason that counted."""
    wanted = asks(reading.text)
    reasons: list[str] = []
    lacking = [
        f"{name}={value}"
        for ticket in reading.evidence.tickets
        for name, value in ticket.facets.items()
        if value and not mentions(reading.text, [value])
    ]
    if "rule" in wanted and lacking:
        reasons.append(
            f"asks for a rule, and the ticket brings what the question lacks: {', '.join(lacking)}"
        )
    if reading.disagree:
        reasons.append("sources disagree")
    if "compare" in wanted:
        reasons.append("compares")
    if "aggregate" in wanted:
        reasons.append("counts or lists tickets")
    if "similar" in wanted:
        reasons.append("asks for similar tickets")
    if len(reading.named) > 1:
        reasons.append(f"names {len(reading.named)} tickets")
    for name, values in reading.vocabulary.items():
        hit = mentions(reading.text, values)
        if len(hit) > 1:
            reasons.append(f"names several values of {name}: {', '.join(hit)}")
    if reasons:
        return Route("agent", tuple(reasons))
    return Route("direct", ("one search covers the question",))


def published_score(text: str, entities: int) -> float:
    """Score a question as the published five-line classifier does; at least 8 means complex. A baseline, not used to route.

    Features and weights: "Agentic RAG architecture explained": tokens x 0.1, entities x 1.5, " and " x 2, " compare" x 3.
    """
    lowered = text.lower()
    return (
        len(text.split()) * 0.1
        + entities * 1.5
        + lowered.count(" and ") * 2.0
        + lowered.count(" compare") * 3.0
    )


PUBLISHED_THRESHOLD = 8.0
