"""Front matter in every dialect: read, or the document is kept out by name; never quoted, never everybody's by mistake."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.config import SourceSettings
from ingest.errors import DocumentWithheld
from ingest.parse import to_document
from ingest.sources import Changed
from ingest.types import Document

MARKDOWN = "text/markdown"
BODY = "The band of a senior agent ends at 61000 EUR.\n"


def read(text: str, path: str = "pay.md", media_type: str = MARKDOWN) -> Document:
    changed = Changed(f"docs:{path}", "1", text.encode(), media_type, "https://x", path)
    return to_document(changed, SourceSettings(), "docs")


def in_yaml(key: str, value: object) -> str:
    return f"{key}: {json.dumps(value)}"


def in_toml(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value)}"


def in_json(key: str, value: object) -> str:
    return f"{json.dumps(key)}: {json.dumps(value)}"


DIALECTS = {
    "yaml": ("---\n", in_yaml, "\n", "\n---\n"),
    "yaml with its name": ("---yaml\n", in_yaml, "\n", "\n---\n"),
    "yaml with a comment": ("--- # of the handbook\n", in_yaml, "\n", "\n---\n"),
    "yaml that ends in dots": ("---\n", in_yaml, "\n", "\n...\n"),
    "yaml between lines across the page": ("-----\n", in_yaml, "\n", "\n-----\n"),
    "yaml behind blank lines and byte order marks": ("\ufeff \n\n\ufeff---\n", in_yaml, "\n", "\n---\n"),
    "yaml with windows line ends": ("---\r\n", in_yaml, "\r\n", "\r\n---\r\n"),
    "yaml as an object": ("---\n{", in_yaml, ", ", "}\n---\n"),
    "toml": ("+++\n", in_toml, "\n", "\n+++\n"),
    "toml behind a comment": ("+++\n# of the handbook\n\n", in_toml, "\n", "\n+++\n"),
    "toml by name": ("---toml\n", in_toml, "\n", "\n---\n"),
    "toml between yaml's marks": ("---\n", in_toml, "\n", "\n---\n"),
    "json": (";;;\n{", in_json, ",\n", "}\n;;;\n"),
    "json by name": ("---json\n{\n", in_json, ",\n", "\n}\n---\n"),
    "json alone": ("{\n", in_json, ",\n", "\n}\n"),
    "json on one line": ("{", in_json, ", ", "}\n"),
}


@pytest.mark.parametrize("media_type", [MARKDOWN, "text/plain", "text/html"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_front_matter_says_the_same_in_every_dialect(dialect: str, media_type: str) -> None:
    begin, write, between, end = DIALECTS[dialect]
    said = {
        "title": "Salary bands",
        "readers": ["finance"],
        "effective": "2025-07-01",
        "facets": {"plan": "1.10"},
    }
    flow = {**said, "facets": None} if write is in_toml else said
    lines = [write(key, value) for key, value in flow.items() if value is not None]
    lines += ['facets = {plan = "1.10"}'] if write is in_toml else []
    document = read(f"{begin}{between.join(lines)}{end}\n{BODY}", media_type=media_type)
    assert document.title == "Salary bands"
    assert document.readers == {"finance"}
    assert str(document.effective_from) == "2025-07-01"
    assert document.facets == {"plan": "1.10"}
    assert document.text.strip() == BODY.strip()


@pytest.mark.parametrize(
    "text",
    [
        f"Title: Salary bands\nReaders: finance\n\n{BODY}",
        f"title: Salary bands\nreaders: finance,\n  board\n\n{BODY}",
        f"<!--\n.. title: Salary bands\n.. readers: finance\n-->\n\n{BODY}",
        f"<!--\ntitle: Salary bands\nreaders: finance\n-->\n\n{BODY}",
    ],
)
def test_lines_before_the_text_or_in_its_first_comment_are_front_matter(text: str) -> None:
    document = read(text)
    assert (document.title, "finance" in document.readers) == ("Salary bands", True)
    assert document.text.strip() == BODY.strip()


def test_values_of_toml_are_dates_and_truth_as_in_yaml() -> None:
    document = read(
        f"+++\neffective = 2025-07-01\nsuperseded = 2026-07-01T00:00:00Z\ndraft = false\nweight = 3\n+++\n{BODY}"
    )
    assert (str(document.effective_from), str(document.superseded_on)) == ("2025-07-01", "2026-07-01")
    assert document.notes == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("+++\nreaders = [finance]\n+++\n", "malformed"),
        ("+++\nreaders: finance\n+++\n", "malformed"),
        ("+++\nno keys at all\n+++\n", "malformed"),
        ('+++\nreaders = ["finance"]\n\n', r"never closed; add a line with \+\+\+"),
        ('+++\n# who\n\nweight = 1\nreaders = ["finance"]\n\n', "never closed"),
        ("---\ndate: 2025-01-01\nreaders: finance\n\n", "never closed; add a line with ---"),
        ("---\ndraft: true\n\n", "never closed"),
        ("---toml\nreaders = finance\n---\n", "malformed"),
        ("---\nreaders = finance\n---\n", "malformed"),
        ('---js\n{ readers: ["finance"] }\n---\n', "'js' is not read; write YAML"),
        (";;;\n{readers: 1}\n;;;\n", "malformed"),
        (';;;\n"readers": ["finance"],\n', "never closed; add a line with ;;;"),
        ('{\n"readers": ["finance"],\n}\n', "malformed"),
        ('{ "draft": true\n', "malformed"),
        ("---\nreaders: [finance\n---\n", "malformed at line 3"),
        ("---\nreaders:\n---\n", "at least one reader"),
        ("---\nreader: {a: b}\n---\n", "readers"),
        ("---\nreadres: finance\n---\n", "'readers' misspelt"),
    ],
)
def test_a_document_whose_readers_nobody_can_tell_is_kept_out(text: str, reason: str) -> None:
    with pytest.raises(DocumentWithheld, match=reason):
        read(f"{text}{BODY}")


@pytest.mark.parametrize(
    "text",
    [
        "+++ Breaking news +++\n\nThe office is closed.",
        "+++\n\nA sentence, and another.",
        "---\nTwo rules\n---\nand text",
        "-----\nNote: the office is closed\n-----\nand text",
        "; a comment\nand text",
        '{ "error": 429 }\n\nis what the server answers.',
        "{: .no_toc }\n\nText",
        "{% include x %}\n\nText",
        "Ana: hello\nBen: hi\n\nText",
        "Status: open\nOwner: Ana\n\nText",
        "Note: we are closed\n\nText",
        "<!--\nnot a key\n-->\n\nText",
        "```yaml\n---\nreaders: finance\n---\n```\n\nText",
    ],
)
def test_a_text_that_only_looks_a_little_like_it_is_text(text: str) -> None:
    document = read(text, media_type="text/plain")
    assert document.readers == {"members"}
    shown = document.text.replace("\\", "")
    assert all(line in shown for line in text.split("\n") if line.strip())


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["---", "+++", ";;;", "---toml", "---json", "-----", "--- ", "\ufeff---", "\n\n+++", "{"]),
    st.permutations(['readers = ["finance"]', "readers: [finance]", '"readers": ["finance"],', "title: Pay", "draft: true", "# note", "weight = 1"]).flatmap(
        lambda lines: st.integers(1, len(lines)).map(lambda most: lines[:most])
    ),
    st.sampled_from(["---", "+++", ";;;", "...", "}", "-->", "-----", ""]),
)  # fmt: skip
def test_whatever_is_mixed_up_a_document_with_readers_or_a_draft_is_never_everybodys(
    begin: str, lines: list[str], end: str
) -> None:
    text = "\n".join(lines)
    try:
        document = read(f"{begin}\n{text}\n{end}\n\n{BODY}")
    except DocumentWithheld:
        return
    assert "draft" not in text
    assert document.readers == {"finance"} or "readers" not in text


HELD = [
    ("draft", "true"),
    ("Draft", "True"),
    ("draft", "yes"),
    ("draft", "1"),
    ("published", "false"),
    ("published", "No"),
    ("publish", "off"),
    ("unpublished", "true"),
    ("unlisted", "true"),
    ("hidden", "true"),
    ("private", "true"),
    ("archived", "true"),
    ("visible", "false"),
    ("status", "draft"),
    ("Status", "In Review"),
    ("status", "in-review"),
    ("status", "work_in_progress"),
    ("status", "pending"),
    ("status", "archived"),
    ("status", "Borrador"),
    ("status", "En revisión"),
    ("visibility", "private"),
    ("visibility", "hidden"),
    ("post_status", "future"),
    # One that is named twice is held back by either.
    ("published", "false\nstatus: published"),
    ("status", "published\ndraft: true"),
]
SHOWN = [
    ("draft", "false"),
    ("draft", ""),
    ("published", "true"),
    ("published", "2021-05-03"),
    ("publish", "yes"),
    ("hidden", "no"),
    ("status", "published"),
    ("status", "Final"),
    ("visibility", "public"),
    # Whether it is published on that day, and by whom, the text does not say.
    ("publishDate", "2099-01-01"),
    ("date", "2099-01-01"),
    ("noindex", "true"),
]


@pytest.mark.parametrize(("key", "value"), HELD)
def test_what_its_author_has_not_published_is_kept_out_with_the_way_to_publish_it(
    key: str, value: str
) -> None:
    with pytest.raises(
        DocumentWithheld, match=r"says that it is not published; write \w+: \w+.* to have it read"
    ):
        read(f"---\ntitle: Vouchers\n{key}: {value}\n---\n{BODY}")


@pytest.mark.parametrize(("key", "value"), SHOWN)
def test_what_is_published_is_read_without_a_note(key: str, value: str) -> None:
    document = read(f"---\ntitle: Vouchers\n{key}: {value}\n---\n{BODY}")
    assert (document.text.strip(), document.notes) == (BODY.strip(), ())


@pytest.mark.parametrize(
    ("key", "value"), [("status", "purple"), ("draft", "perhaps"), ("visibility", "internal")]
)
def test_a_value_that_nobody_knows_is_noted(key: str, value: str) -> None:
    (note,) = read(f"---\n{key}: {value}\n---\n{BODY}").notes
    assert f"{key}: {value!r} is not known" in note
    assert "draft: true" in note


@pytest.mark.parametrize("end", ["", "effective: soon\n", "readers: [finance\n"])
def test_a_draft_is_kept_out_before_anything_else_of_it_is_looked_at(end: str) -> None:
    with pytest.raises(DocumentWithheld):
        read(f"---\ndraft: true\n{end}---\n")


def test_a_folder_of_drafts_is_kept_out() -> None:
    with pytest.raises(DocumentWithheld, match="folder '_drafts'"):
        read(BODY, "help/_drafts/pay.md")
    assert read(BODY, "_drafts.md").text.strip() == BODY.strip()


def test_a_web_page_that_search_engines_shall_not_list_is_no_draft() -> None:
    page = '<html><head><meta name="robots" content="noindex"><title>Pay</title></head><body><p>61000 EUR</p></body></html>'
    assert read(page, "pay.html", "text/html").text.strip() == "61000 EUR"
