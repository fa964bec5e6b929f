"""The code blocks of the documentation, as a Markdown parser sees them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[3]
PROMPT = "$ "
INDENTED = "(indented)"
"""The language of a block that is none but for its indentation."""

_PLAIN = {"code_inline": "`…`", "html_inline": "", "softbreak": " ", "hardbreak": " "}
"""What stands for the parts of a paragraph that are no text; the others stand for themselves."""
_HEREDOC = re.compile(r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)")


@dataclass(frozen=True)
class CodeBlock:
    """A code block, and where it stands."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first(self) -> str:
        """The first line, by which lists of exceptions name a block."""
        return self.text.partition("\n")[0].strip()


@dataclass(frozen=True)
class Command:
    """A command of a console or shell block, its here documents cut out."""

    block: CodeBlock
    text: str
    documents: tuple[str, ...] = ()


def pages() -> list[Path]:
    """Return all pages that users or contributors read; those of a distribution are its README."""
    top = (page for pattern in ("*.md", "[!.]*/README.md") for page in ROOT.glob(pattern))
    return sorted({*top, *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")})


def blocks_in(page: str, text: str) -> Iterator[CodeBlock]:
    """Yield the code blocks of a page."""
    for token in MarkdownIt("commonmark").parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            yield CodeBlock(page, line, token.info.strip(), token.content)
        elif token.type == "code_block":
            yield CodeBlock(page, line, INDENTED, token.content)


def prose_of(text: str) -> Iterator[str]:
    """Yield the text of a page without code, addresses and comments."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or []:
            if child.type == "text":
                yield child.content


def paragraphs_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, heading and cell without its code, with the line that it begins at.

    A phrase that is broken over two lines is in one piece.
    """
    line = 0
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        line = token.map[0] + 1 if token.map else line
        if token.type == "inline":
            yield line, "".join(_PLAIN.get(one.type, one.content) for one in token.children or [])


@cache
def all_blocks() -> tuple[CodeBlock, ...]:
    """Return every block of every page."""
    return tuple(
        block
        for page in pages()
        for block in blocks_in(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
    )


def commands_of(block: CodeBlock) -> list[Command]:
    """Return what a block tells to type: what follows `$ `, or every line where no line has it."""
    lines = block.text.splitlines()
    typed = [line.startswith(PROMPT) for line in lines]
    if not any(typed):
        return _joined(block, lines, begins=[True] * len(lines))
    return _joined(block, [line.removeprefix(PROMPT) for line in lines], begins=typed)


def _joined(block: CodeBlock, lines: list[str], begins: list[bool]) -> list[Command]:
    """Join lines to commands: a quote, a backslash or a here document goes on in the next line."""
    found, rest = [], list(zip(lines, begins, strict=True))
    while rest:
        text, begin = rest.pop(0)
        if not begin or not text.strip():
            continue
        while rest and (text.endswith("\\") or _is_open(text)):
            text += "\n" + rest.pop(0)[0]
        documents = []
        for opened in _HEREDOC.finditer(text):
            inside: list[str] = []
            while rest and rest[0][0] != opened["end"]:
                inside.append(rest.pop(0)[0])
            rest = rest[1:]
            documents.append("\n".join(inside) + "\n")
        found.append(Command(block, text, tuple(documents)))
    return found


def _is_open(text: str) -> bool:
    """Return whether a quote, or a list in parentheses, has no end yet."""
    quote, depth = "", 0
    for number, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and text[number - 1 : number] in {"", " ", "\n"}:
            break
        else:
            depth += (letter == "(") - (letter == ")")
    return bool(quote) or depth > 0
