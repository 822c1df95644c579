"""Text from Slack and to Slack: what was typed is read, and nothing but a source's link becomes live."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slack_sdk.models.blocks import Block

from bot.slack import text, views
from bot.types import Answer, Citation, Route

SOURCE = "https://help.example.com/refunds"
LIVE = re.compile(r"<(?:[@#!]|https?:|mailto:|tel:|slack:)[^>]*>", re.IGNORECASE)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("<@U_BOT> how long?", "how long?"),
        ("<@U_BOT|twohop>: how long?", "how long?"),
        ("hey <@U_BOT>, how long?", "hey , how long?"),
        ("<@U_BOT> ask <@U_ANA|ana> in <#C1|help>", "ask @ana in #help"),
        ("<@U_BOT> what did <@U_ANA> say in <#C1>?", "what did @U_ANA say in #C1?"),
        ("<@U_BOT> <!subteam^S1|@support> R&amp;D &lt;b&gt;", "@support R&D <b>"),
        ("<@U_BOT> what is <https://a.example/x|this>", "what is this"),
        ("<@U_BOT> mail <mailto:a@b.example>", "mail a@b.example"),
        ("<@U_BOT>", ""),
        ("<@U_BOT>\u00a0 ", ""),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_a_message_is_read_as_it_was_typed(written: str, asked: str) -> None:
    assert text.question(written, "U_BOT") == asked


@pytest.mark.parametrize(
    "hostile",
    [
        "<!channel> read this",
        "<!here|here> read this",
        "ask <@U_ANA> or <#C_HELP>",
        "<https://evil.example|Reset your password>",
        "<HTTPS://evil.example>",
        "`<!channel>`",
        "```\n<!channel>\n```",
        "```\n<!channel>",
        "\\`<!channel> \\`",
        "<\u200b!channel>",
        "<<!channel>>",
        "<!subteam^S1>",
    ],
)
def test_no_token_of_a_document_becomes_live(hostile: str) -> None:
    for made in (text.markdown(hostile), text.plain(hostile), text.escaped(hostile)):
        assert not LIVE.search(made)


@pytest.mark.parametrize(
    "hostile",
    [
        "[Reset](https://evil.example/x)",
        "![pixel](https://evil.example/x.png)",
        "[a [b](https://evil.example)](https://evil.example)",
        "[Reset](<https://evil.example/x>)",
        '[Reset](https://evil.example/x "title")',
        "[Reset](https://evil.example/a(b)c)",
        "[Reset](\nhttps://evil.example)",
        "https://evil.example/x",
        "www.evil.example",
        "[Reset][1]\n\n[1]: https://evil.example",
        "`[Reset](https://evil.example)",
    ],
)
def test_no_address_of_a_document_becomes_a_link(hostile: str) -> None:
    made = text.markdown(hostile, [SOURCE])
    assert "](" not in made
    assert "][" not in made
    assert not re.search(r"^\s*\[[^\]]*\]:", made, re.MULTILINE)
    for found in re.finditer(r"(?:https://|www\.)", made):
        assert made[found.start() - 1] == "`"


def test_a_source_stays_a_link_and_code_stays_code() -> None:
    written = f"See [the page]({SOURCE}) and {SOURCE}.\n\n```\ncurl https://api.example.com | jq '.[0](1)'\n```\nor `a[b](c)`"
    assert text.markdown(written, [SOURCE]) == written
    assert f"[the page]({SOURCE})" not in text.markdown(written)


def test_a_link_in_slacks_own_format_cannot_be_broken_out_of() -> None:
    assert text.link("https://a.example/x|y>z", "T > <!here>") == (
        "<https://a.example/x%7Cy%3Ez|T &gt; &lt;!here&gt;>"
    )
    assert text.link("file:///etc/passwd", "A & B") == "A &amp; B"
    assert text.link("https://a.example/" + "x" * 3000, "T") == "T"


def of(body: str, sources: int = 1) -> Answer:
    citations = tuple(
        Citation(n, f"docs:{n}.md", f"Title {n}", "Section", f"https://help.example.com/{n}", "")
        for n in range(1, sources + 1)
    )
    return Answer("answered", body, Route("direct", ()), "q", citations=citations)


def check(parts: tuple[views.Part, ...]) -> None:
    for part in parts:
        assert part.text.strip()
        parsed = Block.parse_all(part.blocks)
        assert parsed
        assert all(block is not None for block in parsed)
        for block in parsed:
            block.validate_json()
        markdown = "".join(block.get("text", "") for block in part.blocks if block["type"] == "markdown")
        elements = [e["text"] for block in part.blocks for e in block.get("elements", ())]
        assert len(markdown) + sum(map(len, elements)) <= views.MOST
        assert all(0 < len(element) <= 3000 for element in elements)
        assert markdown.count("```") % 2 == 0
        assert not LIVE.search(markdown)


def test_a_long_answer_is_split_and_its_sources_come_last() -> None:
    parts = views.answer(of("\n\n".join(f"Paragraph {n} " + "word " * 60 for n in range(100))))
    assert len(parts) > 1
    check(parts)
    assert [bool(part.blocks[1:]) for part in parts] == [False] * (len(parts) - 1) + [True]
    whole = "\n".join(block["text"] for part in parts for block in part.blocks[:1])
    assert all(f"Paragraph {n} " in whole for n in range(100))


def test_sixty_headings_are_more_than_one_message() -> None:
    parts = views.answer(of("\n\n".join(f"## Heading {n}\n\ntext" for n in range(60))))
    assert len(parts) > 2
    check(parts)


def test_a_fence_that_is_cut_is_closed_and_opened_again() -> None:
    parts = views.answer(
        of("Before\n\n```\n" + "\n".join(f"line {n}" for n in range(3000)) + "\n```\n\nafter")
    )
    assert len(parts) > 1
    check(parts)


def test_many_sources_fit() -> None:
    check(views.answer(of("Answer [1]", sources=60)))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "<!channel>",
                    "<@U1>",
                    "<",
                    ">",
                    "|",
                    "`",
                    "```",
                    "\n",
                    "\n\n",
                    "[",
                    "](",
                    ")",
                    "](https://e.example)",
                ),
                *(
                    "https://e.example",
                    "![",
                    "# ",
                    "- ",
                    "~~~",
                    "\\",
                    "é",
                    "😀",
                    "word " * 50,
                    "x" * 6000,
                    "&lt;",
                    "\u200b",
                ),
            ]
        ),
        max_size=40,
    ).map("".join)
)
def test_whatever_the_text_holds_slack_takes_it_and_nothing_is_live(body: str) -> None:
    parts = views.answer(of(body))
    for part in parts:
        for made in (part.text.partition("\nSources\n")[0], *(b["text"] for b in part.blocks[:1])):
            assert not LIVE.search(made)
        assert Block.parse_all(part.blocks)
        assert all(len(b["text"]) <= 10_000 for b in part.blocks if b["type"] == "markdown")
