"""Text on its way from Slack and to Slack: tokens are decoded, and nothing but a source's link becomes live.

What Slack reads as a mention, a broadcast or a link is in `<…>`, in Markdown links and in bare addresses. Text of
documents, tickets and models may hold any of them, so each is taken apart here before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

from bot.types import Citation

BREAK = "\u200b"
"""Zero width: put after a character, it keeps Slack from reading on."""

_MENTION = re.compile(r"<([@#!])([^>|]*)(?:\|([^>]*))?>")
_LINK = re.compile(r"<((?:https?|mailto|tel):[^>|]+)(?:\|([^>]*))?>")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ue000-\uf8ff\ufeff]"
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^`\n]*$")
_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(\s*<?([^\s()<>]+)>?(?:\s+\"[^\"\n]*\")?\s*\)")
_BARE = re.compile(
    r"(?<![\w/])(?:[a-z][a-z0-9+.-]*://|(?:mailto|tel|slack):|www\.)[^\s<>()\[\]`|\"]+", re.IGNORECASE
)
_TOKEN_IN_CODE = re.compile(r"<(?=[@#!]|[a-z][a-z0-9+.-]*:)", re.IGNORECASE)
_MOST_URL = 3000


def question(text: str, bot: str) -> str:
    """Return a message as it was typed: our own mention stripped, other tokens and entities decoded."""

    def mention(match: re.Match[str]) -> str:
        kind, id_, label = match[1], match[2], match[3]
        if kind == "@":
            return "" if id_ == bot else f"@{label or id_}"
        return f"#{label or id_}" if kind == "#" else (label or f"@{id_.partition('^')[0]}")

    decoded = _LINK.sub(
        lambda match: match[2] or match[1].removeprefix("mailto:"), _MENTION.sub(mention, text)
    )
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        decoded = decoded.replace(entity, character)
    return re.sub(r"[ \t\xa0]+", " ", decoded).strip(" \t\n,:")


def mentions(text: str, user: str) -> bool:
    """Tell whether a message as Slack wrote it names this user."""
    return any(match[1] == "@" and match[2] == user for match in _MENTION.finditer(text))


def escaped(text: str) -> str:
    """Escape text for Slack's own format (mrkdwn): the three characters that it gives a meaning."""
    return _CONTROL.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def live(url: str) -> bool:
    """Tell whether an address can be a link in Slack; a file's address is nobody's link."""
    parts = urlsplit(url)
    return (
        parts.scheme in ("http", "https") and bool(parts.netloc) and len(url) <= _MOST_URL and " " not in url
    )


def link(url: str, label: str) -> str:
    """Return a link in Slack's own format, or only its label where the address can be none."""
    if not live(url):
        return escaped(label)
    address = url.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E").replace("&", "&amp;")
    return f"<{address}|{escaped(label).replace('|', '/')}>"


def markdown(text: str, links: Iterable[str] = ()) -> str:
    """Return Markdown in which only `links` are links and nothing pings anybody; code stays as it is."""
    allowed = frozenset(url for url in links if live(url))
    return "\n".join(
        "\n".join(lines) if is_code else _prose_and_spans("\n".join(lines), allowed)
        for is_code, lines in _blocks(_CONTROL.sub("", text))
    )


def plain(text: str, links: Iterable[str] = ()) -> str:
    """Return the same text in Slack's own format, for notifications and where blocks are refused."""
    made = _MARKDOWN_LINK.sub(lambda match: match[1], markdown(text, links))
    made = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"*\1*", made)
    made = re.sub(r"^#{1,6} +(.+?) *#*$", r"*\1*", made, flags=re.MULTILINE)
    return made.replace("&lt;", "<").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def source_lines(citations: Sequence[Citation]) -> tuple[str, ...]:
    """Return one line a source, `[1] <url|Title> › section`, in Slack's own format."""
    return tuple(
        f"[{c.n}] {link(c.url, _clipped(c.title))}{f' › {escaped(_clipped(c.section))}' if c.section else ''}"
        for c in citations
    )


def split(text: str, most: int, most_blocks: int = 40) -> tuple[str, ...]:
    """Cut Markdown into pieces of at most `most` characters and about `most_blocks` blocks, between lines.

    Slack turns each heading, list, table, paragraph and fence into a block of its own. A fence that is cut is closed and opened again.
    """
    pieces: list[str] = []
    piece: list[str] = []
    fence = ""
    blocks = 0
    before = ""
    for line in _short_lines(text, most // 2):
        opens = bool(_FENCE.match(line))
        starts = (
            not fence
            and bool(line.strip())
            and (opens or not before.strip() or line.lstrip().startswith("#"))
        )
        room = most - len("\n```")
        if piece and (
            sum(map(len, piece)) + len(piece) + len(line) > room or (starts and blocks >= most_blocks)
        ):
            pieces.append("\n".join([*piece, *([fence] if fence else [])]))
            piece, blocks = ([fence] if fence else []), 0
        blocks += starts
        piece.append(line)
        if opens:
            fence = "" if fence else line.strip()[:3]
        before = line
    pieces.append("\n".join(piece))
    return tuple(kept for kept in (one.strip("\n") for one in pieces) if kept.strip()) or ("",)


def _short_lines(text: str, most: int) -> Iterable[str]:
    for line in text.split("\n"):
        rest = line
        while len(rest) > most:
            cut = rest.rfind(" ", most // 2, most)
            cut = cut if cut > 0 else most
            yield rest[:cut]
            rest = rest[cut:].lstrip(" ")
        yield rest


def _blocks(text: str) -> list[tuple[bool, list[str]]]:
    """Tell fenced code from prose; a fence that is not closed is prose, because Slack may read it so."""
    out: list[tuple[bool, list[str]]] = [(False, [])]
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        end = _closing(lines, at)
        if end > at:
            out += [(True, [_code(line) for line in lines[at : end + 1]]), (False, [])]
            at = end + 1
        else:
            out[-1][1].append(lines[at])
            at += 1
    return [(is_code, part) for is_code, part in out if part]


def _closing(lines: Sequence[str], at: int) -> int:
    opened = _FENCE.match(lines[at])
    if not opened:
        return -1
    closes = re.compile(rf"^ {{0,3}}{re.escape(opened[1][0])}{{{len(opened[1])},}}\s*$")
    return next((i for i in range(at + 1, len(lines)) if closes.match(lines[i])), -1)


def _code(text: str) -> str:
    return _TOKEN_IN_CODE.sub("<" + BREAK, text)


def _prose_and_spans(text: str, allowed: frozenset[str]) -> str:
    """Take prose apart between its code spans; a span ends with its paragraph."""
    return "".join(
        part if re.fullmatch(r"\n\s*\n", part) else _outside_spans(part, lambda prose: _prose(prose, allowed))
        for part in re.split(r"(\n\s*\n)", text)
    )


def _outside_spans(text: str, change: Callable[[str], str]) -> str:
    out: list[str] = []
    at = 0
    for span in _SPAN.finditer(text):
        out += [change(text[at : span.start()]), _code(span[0])]
        at = span.end()
    return "".join([*out, change(text[at:])])


def _prose(text: str, allowed: frozenset[str]) -> str:
    kept: list[str] = []

    def keep(piece: str) -> str:
        kept.append(piece)
        return f"\ue000{len(kept) - 1}\ue001"

    def linked(match: re.Match[str]) -> str:
        label, url = match[1], match[2]
        if url in allowed and not match[0].startswith("!"):
            return keep(f"[{_bare(label, allowed, _as_code).replace('<', '&lt;')}]({url})")
        return f"{label} ({url})" if label and label != url else url

    out = _MARKDOWN_LINK.sub(linked, text)
    out = _bare(out, allowed, lambda url: keep(_as_code(url)))
    # What is left of the syntax of links, images and link definitions is broken, well-formed or not.
    out = out.replace("](", f"]{BREAK}(").replace("][", f"]{BREAK}[").replace("![", "[")
    out = re.sub(r"^( {0,3}\[[^\]\n]*\]):", rf"\1{BREAK}:", out, flags=re.MULTILINE)
    out = out.replace("<", "&lt;")
    return re.sub("\ue000(\\d+)\ue001", lambda match: kept[int(match[1])], out)


def _bare(text: str, allowed: frozenset[str], code: Callable[[str], str]) -> str:
    def address(match: re.Match[str]) -> str:
        url = match[0].rstrip(".,;:!?'*_")
        return match[0] if url in allowed else code(url) + match[0][len(url) :]

    return _BARE.sub(address, text)


def _as_code(url: str) -> str:
    return f"`{url}`"


def _clipped(text: str, most: int = 150) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
