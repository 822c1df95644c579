"""Text as Markdown holds it: free of what nobody sees, escaped where it would mean something, on one line."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
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


def block_tokens(text: str) -> list[Token]:
    """Return the tokens of Markdown's blocks, CommonMark with tables; of all inline tokens only a heading's have children."""
    return _parser().parse(text)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.at("inline", _inline_of_headings)
    return parser


def _inline_of_headings(state: StateCore) -> None:
    """Read what stands in headings alone: nobody asks for the emphasis and links of a paragraph."""
    for before, token in pairwise(state.tokens):
        if before.type == "heading_open" and token.children is not None:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


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
