"""The limits of Block Kit: what Slack refuses in the blocks of a message or a view, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bot.playground.state import ApiError

Json = Mapping[str, Any]

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
MARKDOWN_CHARS = 12_000
MESSAGE_CHARS = 13_202

_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


def check_message(blocks: Any, *, markdown_text: str = "") -> None:
    """Check the blocks of one message; raises ApiError `invalid_blocks` or `msg_blocks_too_long`."""
    found = [*_listed(blocks, "/blocks", MESSAGE_BLOCKS)]
    if not found:
        texts = [each["text"] for each in blocks if each["type"] == "markdown"]
        expanded = sum(1 for each in blocks if each["type"] != "markdown") + sum(map(expansion, texts))
        if expanded > MESSAGE_BLOCKS:
            found.append(
                f"markdown expands to {expanded} blocks, no more than {MESSAGE_BLOCKS} [json-pointer:/blocks]"
            )
        if sum(map(len, texts)) > MARKDOWN_CHARS or len(markdown_text) + _chars(blocks) > MESSAGE_CHARS:
            raise ApiError("msg_blocks_too_long")
    _refuse(found, "invalid_blocks")


def check_view(view: Any) -> None:
    """Check a modal or a Home tab; raises ApiError `invalid_arguments`."""
    if not isinstance(view, Mapping) or view.get("type") not in ("modal", "home"):
        raise ApiError(
            "invalid_arguments",
            response_metadata={"messages": ["[ERROR] must be a modal or home [json-pointer:/view/type]"]},
        )
    found = [*_listed(view.get("blocks"), "/view/blocks", VIEW_BLOCKS)]
    if view["type"] == "modal":
        for name in ("title", "submit", "close"):
            if name == "title" or name in view:
                found += _text(view.get(name), f"/view/{name}", 24, kinds=("plain_text",))
    for name, most in (("callback_id", 255), ("private_metadata", 3000)):
        if len(view.get(name, "")) > most:
            found.append(f"must be less than {most + 1} characters [json-pointer:/view/{name}]")
    _refuse(found, "invalid_arguments")


def expansion(text: str) -> int:
    """Estimate how many blocks Slack makes of one markdown text: each heading, list, table, code and paragraph is one."""
    count, before, fenced = 0, "", False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            count += not fenced
            fenced, before = not fenced, "code"
            continue
        if fenced:
            continue
        kind = (
            ""
            if not line.strip()
            else "heading"
            if line.startswith("#")
            else "list"
            if _ITEM.match(line)
            else "table"
            if line.startswith("|")
            else "quote"
            if line.startswith(">")
            else "paragraph"
        )
        count += bool(kind) and (kind == "heading" or kind != before)
        before = kind
    return count


def _refuse(found: Sequence[str], error: str) -> None:
    if found:
        raise ApiError(
            error, errors=list(found), response_metadata={"messages": [f"[ERROR] {each}" for each in found]}
        )


def _chars(value: Any) -> int:
    """Return how many characters of text stand in a structure of blocks."""
    if isinstance(value, Mapping):
        own = value.get("text")
        return (len(own) if isinstance(own, str) else 0) + sum(
            _chars(each) for name, each in value.items() if not (name == "text" and isinstance(own, str))
        )
    return sum(map(_chars, value)) if isinstance(value, list) else 0


def _listed(blocks: Any, at: str, most: int) -> Iterator[str]:
    if not isinstance(blocks, list):
        yield f"must be an array [json-pointer:{at}]"
        return
    if len(blocks) > most:
        yield f"no more than {most} items allowed [json-pointer:{at}]"
    ids: set[str] = set()
    for number, block in enumerate(blocks):
        place = f"{at}/{number}"
        if not isinstance(block, Mapping) or block.get("type") not in _BLOCKS:
            kind = block.get("type") if isinstance(block, Mapping) else block
            yield f"unsupported type: {kind} [json-pointer:{place}/type]"
            continue
        name = block.get("block_id", "")
        if name and name in ids:
            yield f"block_id {name} already exists [json-pointer:{place}/block_id]"
        ids.add(name)
        if len(name) > 255:
            yield f"must be less than 256 characters [json-pointer:{place}/block_id]"
        yield from _BLOCKS[block["type"]](block, place)


def _string(value: Any, at: str, most: int) -> Iterator[str]:
    if not isinstance(value, str) or not value:
        yield f"must be more than 0 characters [json-pointer:{at}]"
    elif len(value) > most:
        yield f"must be less than {most + 1} characters [json-pointer:{at}]"


def _text(value: Any, at: str, most: int, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"missing required field: text [json-pointer:{at}]"
    elif value.get("type") not in kinds:
        yield f"unsupported type: {value.get('type')} [json-pointer:{at}/type]"
    else:
        yield from _string(value.get("text"), f"{at}/text", most)


def _items(value: Any, at: str, most: int) -> Iterator[str]:
    if not isinstance(value, list) or not value:
        yield f"must have at least 1 item [json-pointer:{at}]"
    elif len(value) > most:
        yield f"no more than {most} items allowed [json-pointer:{at}]"


def _section(block: Json, at: str) -> Iterator[str]:
    if "text" not in block and not block.get("fields"):
        yield f"missing required field: text [json-pointer:{at}]"
    if "text" in block:
        yield from _text(block["text"], f"{at}/text", 3000)
    if "fields" in block:
        yield from _items(block["fields"], f"{at}/fields", 10)
        for number, each in enumerate(block["fields"]):
            yield from _text(each, f"{at}/fields/{number}", 2000)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{at}/accessory")


def _markdown(block: Json, at: str) -> Iterator[str]:
    yield from _string(block.get("text"), f"{at}/text", MARKDOWN_CHARS)


def _header(block: Json, at: str) -> Iterator[str]:
    yield from _text(block.get("text"), f"{at}/text", 150, kinds=("plain_text",))


def _context(block: Json, at: str) -> Iterator[str]:
    yield from _items(block.get("elements"), f"{at}/elements", 10)
    for number, each in enumerate(block.get("elements") or ()):
        if not (isinstance(each, Mapping) and each.get("type") == "image"):
            yield from _text(each, f"{at}/elements/{number}", 3000)


def _elements(most: int, kinds: tuple[str, ...] = ()) -> Callable[[Json, str], Iterator[str]]:
    def check(block: Json, at: str) -> Iterator[str]:
        yield from _items(block.get("elements"), f"{at}/elements", most)
        for number, each in enumerate(block.get("elements") or ()):
            yield from _element(each, f"{at}/elements/{number}", kinds)

    return check


def _element(value: Any, at: str, kinds: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(value, Mapping) or (kinds and value.get("type") not in kinds):
        yield f"unsupported element [json-pointer:{at}]"
        return
    if len(value.get("action_id", "")) > 255:
        yield f"must be less than 256 characters [json-pointer:{at}/action_id]"
    match value.get("type"):
        case "button":
            yield from _text(value.get("text"), f"{at}/text", 75, kinds=("plain_text",))
            for name, most in (("value", 2000), ("url", 3000)):
                if len(value.get(name, "")) > most:
                    yield f"must be less than {most + 1} characters [json-pointer:{at}/{name}]"
        case "static_select" | "multi_static_select" | "radio_buttons" | "checkboxes" | "overflow" as kind:
            most = {"overflow": 5, "radio_buttons": 10, "checkboxes": 10}.get(kind, 100)
            if "option_groups" not in value:
                yield from _items(value.get("options"), f"{at}/options", most)
            for number, option in enumerate(value.get("options") or ()):
                yield from _text(option.get("text"), f"{at}/options/{number}/text", 75)
                yield from _string(option.get("value"), f"{at}/options/{number}/value", 150)
        case "feedback_buttons":
            for name in ("positive_button", "negative_button"):
                yield from _text(
                    (value.get(name) or {}).get("text"), f"{at}/{name}/text", 75, kinds=("plain_text",)
                )
        case None:
            yield f"missing required field: type [json-pointer:{at}]"


def _container(block: Json, at: str) -> Iterator[str]:
    yield from _items(block.get("child_blocks"), f"{at}/child_blocks", 10)
    for number, each in enumerate(block.get("child_blocks") or ()):
        if isinstance(each, Mapping) and each.get("type") in ("markdown", "container"):
            yield f"unsupported type: {each['type']} [json-pointer:{at}/child_blocks/{number}/type]"
    if "title" in block:
        yield from _text(block["title"], f"{at}/title", 150)


def _input(block: Json, at: str) -> Iterator[str]:
    yield from _text(block.get("label"), f"{at}/label", 2000, kinds=("plain_text",))
    yield from _element(block.get("element"), f"{at}/element")


def _table(block: Json, at: str) -> Iterator[str]:
    yield from _items(block.get("rows"), f"{at}/rows", 100)
    for number, row in enumerate(block.get("rows") or ()):
        yield from _items(row, f"{at}/rows/{number}", 20)


def _any(_block: Json, _at: str) -> Iterator[str]:
    yield from ()


_BLOCKS: Mapping[str, Callable[[Json, str], Iterator[str]]] = {
    "section": _section,
    "markdown": _markdown,
    "header": _header,
    "context": _context,
    "actions": _elements(25),
    "context_actions": _elements(5, ("feedback_buttons", "icon_button")),
    "input": _input,
    "container": _container,
    "table": _table,
    **dict.fromkeys(
        (
            "divider",
            "image",
            "rich_text",
            "file",
            "video",
            "data_table",
            "card",
            "carousel",
            "alert",
            "task_card",
            "plan",
        ),
        _any,
    ),
}
