"""Blocks and sentences of Markdown text, and its marks taken off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["heading", "item", "text", "quote", "code", "table"]
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")
_DELIMITER_ROW = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_FENCE = re.compile(r"(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown that stands alone: its lines joined, or the lines of a table's rows, header first."""

    kind: BlockKind
    lines: tuple[str, ...]
    indent: int = 0
    """How far its first line is indented: what nests list items."""

    @property
    def text(self) -> str:
        """The lines as one."""
        return " ".join(self.lines)


def blocks(text: str) -> Iterator[Block]:
    """Split Markdown into headings, list items, paragraphs, quotations, code lines and tables, without their marks."""
    raw = text.expandtabs(4).splitlines()
    lines = [line.strip() for line in raw]
    kind: BlockKind = "text"
    open_lines: list[str] = []
    indent = 0
    fence = ""

    def done() -> Iterator[Block]:
        if open_lines:
            yield Block(kind, tuple(open_lines), indent)
            open_lines.clear()

    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if (mark := _FENCE.match(line)) and (not fence or line.startswith(fence)):
            yield from done()
            fence = "" if fence else mark[1]
            continue
        if fence:
            yield Block("code", (line,))
        elif not line or re.fullmatch(r"[-=_* ]{3,}", line):
            yield from done()
        elif heading := re.match(r"#{1,6}\s+", line):
            yield from done()
            yield Block("heading", (line[heading.end() :].rstrip("# "),))
        elif "|" in line and at < len(lines) and "|" in lines[at] and _DELIMITER_ROW.fullmatch(lines[at]):
            yield from done()
            end = next((n for n in range(at + 1, len(lines)) if "|" not in lines[n]), len(lines))
            yield Block("table", (line, *lines[at + 1 : end]))
            at = end
        elif line.startswith("|"):
            yield from done()
            yield Block("text", (line,))
        elif line.startswith(">"):
            if kind != "quote":
                yield from done()
            kind = "quote"
            open_lines.append(line.lstrip("> "))
        elif item := _ITEM.match(line):
            yield from done()
            kind, indent = "item", len(raw[at - 1]) - len(raw[at - 1].lstrip())
            # Steps keep their numbers, because an answer that quotes one needs its place.
            open_lines.append(line if line[0].isdigit() else line[item.end() :])
        else:
            if not open_lines:
                kind, indent = "text", 0
            open_lines.append(line)
    yield from done()


def cells(row: str) -> list[str]:
    """Return the cells of a table row, without emphasis marks."""
    inner = re.sub(r"(?<!\\)\|\s*$", "", row.strip().removeprefix("|"))
    return [plain(cell.replace(r"\|", "|")) for cell in re.split(r"(?<!\\)\|", inner)]


def plain(text: str) -> str:
    """Take the marks of emphasis, code and links off, and keep the words."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*+|`+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|~~", "", text).strip()


def written_out(text: str) -> str:
    """Write each row of a Markdown table as one line, `- Header: cell; Header: cell`; leave everything else."""
    lines = text.splitlines()
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        below = lines[at].strip() if at < len(lines) else ""
        if "|" not in line or "|" not in below or not _DELIMITER_ROW.fullmatch(below):
            out.append(line)
            continue
        header = cells(line)
        at += 1
        while at < len(lines) and "|" in lines[at]:
            pairs = zip(header, cells(lines[at]), strict=False)
            out.append("- " + "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell))
            at += 1
    return "\n".join(out)


def sentences(text: str) -> tuple[str, ...]:
    """Split Markdown into sentences: headings (still marked `#`), list items and table rows stand alone."""
    found: list[str] = []
    for block in blocks(text):
        if block.kind == "heading":
            found.append(f"# {block.text}")
        elif block.kind in ("table", "code"):
            found += [line for line in block.lines if line]
        else:
            found += _split(block.text)
    return tuple(found)


_BREAK = re.compile(r"(?P<mark>[.!?…]+)[”\"’')\]*_]*\s+(?=(?P<next>[\"“‘'(\[*_]*[¿¡]?\w?))")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|mr|mrs|ms|dr|prof|sr|sra|p\. ?ej|approx|incl|cf|fig|dept|ext|st|ud|uds|[a-z])|^\W*\d{1,3})\.$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\b(?:no|nr|nos|art|sec|p|pp|num|ver|apdo)\.$", re.IGNORECASE)


def _split(text: str) -> Iterator[str]:
    start = 0
    for match in _BREAK.finditer(text):
        before = text[start : match.end("mark")]
        following = match["next"][-1:]
        if not (
            following.isupper() or following.isdigit() or match["mark"][-1] == "?" or following in '¿¡"“'
        ):
            continue
        if match["mark"] == "." and (
            _ABBREVIATION.search(before) or (following.isdigit() and _COUNTED.search(before))
        ):
            continue
        yield text[start : match.end()].strip()
        start = match.end()
    if rest := text[start:].strip():
        yield rest
