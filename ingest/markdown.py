"""Text as Markdown holds it: free of what nobody sees, escaped where it would mean something, on one line."""

from __future__ import annotations

import re

from markdown_it.token import Token

_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control, zero-width, bidi and tag characters: nobody sees them, so nobody may be steered by them."""
_BLOCK_START = re.compile(
    r"^( {0,3})(?=#{1,6}(?:\s|$)|>|`{3}|~{3}|\||<[A-Za-z!/?]|[-=_*:|][-=_*:|\s]*$|\[[^\]\n]+\]:)"
)


def clean(text: str) -> str:
    """Return the text with line feeds only and without control, zero-width and bidi characters."""
    return _INVISIBLE.sub("", _NEWLINES.sub("\n", text))


def plain(text: str) -> str:
    """Return plain text as Markdown: no line of it can start a heading, table, fence, quote or rule."""
    lines = (re.sub(r"^ {4,}", "   ", line.replace("\t", "    ").rstrip()) for line in text.split("\n"))
    return "\n".join(_BLOCK_START.sub(r"\1\\", line) for line in lines)


def one_line(text: str) -> str:
    """Return the text with single blanks for all white space."""
    return " ".join(text.split())


def inline_text(token: Token) -> str:
    """Return what a reader sees of an inline token, on one line."""
    shown = (
        child.content
        if child.type in ("text", "code_inline", "image", "html_inline", "text_special")
        else " "
        for child in token.children or ()
        if child.content or child.type in ("softbreak", "hardbreak")
    )
    return one_line("".join(shown))
