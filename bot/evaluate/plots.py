"""Plots as inline SVG, drawn by hand so that they follow the page's light or dark colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _LABEL, _ROW, _GAP = 640, 190, 20, 6
_PLOT = _WIDTH - _LABEL - 60


def bars(rows: Sequence[tuple[str, Mapping[str, float]]], parts: Sequence[str], unit: str, name: str) -> str:
    """Draw one stacked bar a row; `parts` are the colours' names, in order, and `unit` what the length counts."""
    most = max((sum(of.values()) for _, of in rows), default=0) or 1
    drawn = []
    for i, (label, of) in enumerate(rows):
        top, left = i * (_ROW + _GAP), float(_LABEL)
        drawn.append(_text(_LABEL - 8, top + 15, label[:30], "end"))
        for part in parts:
            if width := of.get(part, 0) / most * _PLOT:
                value = f"{of[part]:g}" if unit == "" else f"{of[part]:.1f}"
                title = f"<title>{escape(f'{label}: {part} {value} {unit}'.strip())}</title>"
                drawn.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW}" style="fill:{_colour(part)}">{title}</rect>'
                )
                if width > 8 * len(value):
                    drawn.append(_text(left + width / 2, top + 14, value, "middle", "inside"))
            left += width
        total = sum(of.values())
        drawn.append(
            _text(left + 6, top + 15, f"{total:g}" if unit == "" else f"{total:.0f} {unit}", "start")
        )
    return legend(parts) + _svg(drawn, len(rows) * (_ROW + _GAP), name)


def curves(lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, name: str) -> str:
    """Draw lines over the unit square; both axes are shares."""
    left, top, wide, high = 56, 12, 540, 240
    drawn = []
    for i in range(0, 11, 2):
        at = high - i / 10 * high + top
        drawn.append(f'<line class="grid" x1="{left}" x2="{left + wide}" y1="{at:.1f}" y2="{at:.1f}"/>')
        drawn.append(_text(left - 8, at + 4, f"{i * 10} %", "end"))
        drawn.append(_text(left + i / 10 * wide, top + high + 18, f"{i * 10} %", "middle"))
    for part, points in lines.items():
        path = " ".join(f"{left + a * wide:.1f},{top + (1 - b) * high:.1f}" for a, b in points)
        drawn.append(
            f'<polyline points="{path}" style="stroke:{_colour(part)}"><title>{escape(part)}</title></polyline>'
        )
    drawn.append(_text(left + wide / 2, top + high + 38, x, "middle"))
    drawn.append(f'<g transform="rotate(-90)">{_text(-(top + high / 2), 12, y, "middle")}</g>')
    return legend(list(lines)) + _svg(drawn, top + high + 46, name)


def matrix(
    cells: Mapping[tuple[str, str], tuple[int, str]], rows: Sequence[str], columns: Sequence[str], name: str
) -> str:
    """Draw a count and a note a cell, darker with more; rows are what was expected, columns what came."""
    most = max((n for n, _ in cells.values()), default=0) or 1
    wide, high, left, top = 138, 48, 60, 24
    drawn = [_text(left + (j + 0.5) * wide, 16, column, "middle") for j, column in enumerate(columns)]
    for i, row in enumerate(rows):
        drawn.append(_text(left - 10, top + (i + 0.5) * high + 4, row, "end"))
        for j, column in enumerate(columns):
            n, note = cells.get((row, column), (0, ""))
            at = f'x="{left + j * wide + 1}" y="{top + i * high + 1}" width="{wide - 2}" height="{high - 2}"'
            drawn.append(f'<rect class="cell" {at} style="fill-opacity:{0.06 + 0.34 * n / most:.2f}"/>')
            if n:
                drawn.append(_text(left + (j + 0.5) * wide, top + i * high + 21, str(n), "middle", "count"))
                drawn.append(_text(left + (j + 0.5) * wide, top + i * high + 37, note, "middle", "small"))
    return _svg(drawn, top + len(rows) * high, name, left + len(columns) * wide)


def legend(parts: Sequence[str]) -> str:
    """Name the colours."""
    keys = "".join(f'<span><i style="background:{_colour(part)}"></i>{escape(part)}</span>' for part in parts)
    return f'<p class="legend">{keys}</p>'


def _colour(part: str) -> str:
    """Return the page's colour of this name; a stylesheet name holds no spaces."""
    return f"var(--{escape(part.replace(' ', '-'))}, currentColor)"


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _svg(drawn: Sequence[str], height: float, name: str, width: float = _WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{escape(name)}">'
        f"{''.join(drawn)}</svg>"
    )
