"""Text from outside, safe where it is shown: escaped in Markdown, plain in a terminal and in pictures.

A `str` is text and is escaped by every renderer. `Markdown` is markup of this suite and stays as it is; text gets into
it through its methods, which escape. In a terminal nothing is parsed as Rich's markup: a part's style stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from rnnbench.optional import require
from rnnbench.results import visible

LONGEST_SHOWN = 2_000
"""Characters of one part of a line."""

LONGEST_WHOLE = 16
"""Characters of a word in a table that is not broken. Ids of trials are longer, and read well in several lines."""
LONGEST_IN_PICTURE = 80
"""Characters of a name in a picture."""
_LINK = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|www\.)[^\s<>`|\\]*|(?:mailto|xmpp):[\w.@/+-]*|[\w.+-]*@[\w.@+/-]*")
"""What GitHub turns into a link, or into a mention, by itself."""
_WORD = r"[A-Za-z0-9.,:;%+()=±×µ÷—✓≈†‡-]+"
_PLAIN = re.compile(rf"(?!.*(?:www\.|mailto:|xmpp:)){_WORD}(?: {_WORD})*")
"""Text in which nothing is escaped: that of most cells of tables."""
_SPECIAL = re.compile(r"[*~`$|]|\](?=[(\[:]|$)|(?<!\w)_|_(?!\w)")
_ENTITIES = {"\\": "&#92;", "<": "&lt;", "&": "&amp;"}
_ENTITY = re.compile(r"\\|<|&(?=#?\w+;)")
_BLOCK = re.compile(r"(?=[#>+=-])|(?<=\d)(?=[.)])")


class Markdown(str):
    """Markdown that this suite wrote."""

    __slots__ = ()

    def format(self, *values: object, **named: object) -> Markdown:
        """Each value is escaped, unless it is Markdown."""
        return Markdown(
            super().format(
                *(escaped(str(value)) if not isinstance(value, Markdown) else value for value in values),
                **{
                    name: value if isinstance(value, Markdown) else escaped(str(value)) for name, value in named.items()
                },
            )
        )

    def join(self, parts: Iterable[str]) -> Markdown:
        return Markdown(super().join(map(escaped, parts)))


def escaped(text: str) -> Markdown:
    """`text` as Markdown that shows just it, in one line. What would become a link by itself is shown as code."""
    if isinstance(text, Markdown):
        return text
    if len(text) <= LONGEST_SHOWN and _PLAIN.fullmatch(text):
        return Markdown(text)
    return Markdown("".join(_escaped_parts(visible(text))))


def _escaped_parts(text: str) -> Iterator[str]:
    end = 0
    text = " ".join(text.split())
    for link in _LINK.finditer(text):
        yield _escaped(text[end : link.start()])
        yield f"`{link[0]}`"
        end = link.end()
    yield _escaped(text[end:])


def _escaped(text: str) -> str:
    entities = _ENTITY.sub(lambda found: _ENTITIES[found[0]], text)
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", entities)


def paragraph(text: str) -> Markdown:
    """`text` as a paragraph of its own: it begins neither a heading, a list, a quotation nor a rule."""
    if isinstance(text, Markdown):
        return text
    first, space, rest = escaped(text).partition(" ")
    return Markdown(_BLOCK.sub(r"\\", first, count=1) + space + rest if _begins_block(first) else first + space + rest)


def _begins_block(word: str) -> bool:
    return re.match(r"[#>+=-]|\d+[.)]$", word) is not None


def code(text: str) -> Markdown:
    """`text` as code. Text that code cannot hold is escaped instead."""
    shown = visible(text)
    held = shown.strip() and shown == shown.strip() and not set(shown) & set("`<|\\")
    return Markdown(f"`{shown}`") if held else escaped(text)


def line(*parts: str | tuple[str, str], style: str = "", longest: int = LONGEST_SHOWN) -> Text:
    """A line for a terminal. A part is a text, or a text with its style."""
    text = Text(style=style)
    for part in parts:
        words, part_style = (part, "") if isinstance(part, str) else part
        text.append(visible(words, longest), part_style or None)
    return text


def show(console: Console, *parts: str | tuple[str, str], style: str = "") -> None:
    """Print a line. All reports print their text by it."""
    console.print(line(*parts, style=style), highlight=False)


def grid(title: str) -> Grid:
    """An empty table for a terminal, in the style of all reports. Its cells are `line`s."""
    return Grid(title=line(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def print_grid(console: Console, shown: Grid) -> None:
    """Print a table. Where that would cut figures or break words, each row is a list of its cells with their names."""
    if _least_width(shown) <= console.width:
        console.print(shown)
        return
    names = [" ".join(_text(column.header).plain.split()) for column in shown.columns]
    console.print(shown.title or "", style="italic")
    for row, *cells in zip(shown.rows, *(column.cells for column in shown.columns), strict=True):
        listed = Grid.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
        filled = [(name, _text(cell)) for name, cell in zip(names, cells, strict=True) if _text(cell).plain]
        for name, text in filled:
            listed.add_row(Text(name), text, style=row.style)
        console.print(filled[0][1] if len(filled) == 1 else listed, "")


def _least_width(shown: Grid) -> int:
    """Columns of a terminal in which no figure is cut and no word of up to LONGEST_WHOLE characters is broken."""
    width = 2 * len(shown.columns) if shown.box is box.SIMPLE_HEAD else 3 * len(shown.columns) + 1
    for column in shown.columns:
        words = [
            word
            for cell in (column.header, *column.cells)
            for text in _text(cell).plain.splitlines()
            for word in ([text] if column.no_wrap else text.split())
        ]
        longest = max(map(cell_len, words), default=0)
        width += longest if column.no_wrap else min(longest, LONGEST_WHOLE)
    return width


def _text(cell: RenderableType) -> Text:
    """A cell or a header, which is a `line`, or markup of this suite."""
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))


def in_picture(text: str, longest: int = LONGEST_IN_PICTURE) -> str:
    """`text` for Matplotlib: no formula between dollars, and no name that a legend would leave out."""
    shown = drawable(text, longest).replace("\\", "/").replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def drawable(text: str, longest: int) -> str:
    """`text` with escapes for what the font of pictures lacks: two names in Chinese are no two rows of equal boxes."""
    shown = visible(text, longest)
    if shown.isascii():
        return shown
    drawn = _drawn()
    return "".join(one if ord(one) in drawn else one.encode("ascii", "backslashreplace").decode() for one in shown)


@cache
def _drawn() -> frozenset[int]:
    """The characters of Matplotlib's own font."""
    fonts = require("matplotlib.font_manager", "report", "drawing plots")
    return frozenset(fonts.get_font(fonts.findfont("DejaVu Sans")).get_charmap())
