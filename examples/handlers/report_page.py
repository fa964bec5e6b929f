"""The HTML of a report: one file, nothing loaded from elsewhere, readable in light and in dark.

Everything that comes from outside passes through `escape`.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from html import escape
from typing import TextIO

from examples.handlers.table import Column, Table

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dee6;
  --paper: #fff; --card: #f4f6f9; --accent: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #98a4b3; --line: #313a46;
  --paper: #12161c; --card: #1b212a; --accent: #6ea8fe; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 72rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.75rem; }
p { margin: .25rem 0 1.5rem; color: var(--soft); }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr));
  margin: 0 0 2rem; }
.cards div { padding: 1rem; background: var(--card); border-radius: .5rem; }
.cards dt { color: var(--soft); font-size: .875rem; }
.cards dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums;
  color: var(--accent); }
.cards dd + dd { font-size: .8125rem; color: var(--soft); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .4rem .75rem; text-align: left; border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; background: var(--paper); }
tfoot th, tfoot td { border-bottom: 0; border-top: 2px solid var(--ink); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
@media print { thead th { position: static; } }
"""


def write_page(page: TextIO, table: Table, title: str, on_row: Callable[[int], None]) -> None:
    """Write the whole page; `on_row` hears the number of every finished row."""
    page.write(_head(title, table))
    page.write(_cards(table))
    page.write('<div class="scroll"><table>\n')
    header = _row(table, table.columns, "th", ' scope="col"')
    page.write(f"<thead>{header}</thead>\n<tbody>\n")
    for number, row in enumerate(table, start=1):
        page.write(_row(table, row) + "\n")
        on_row(number)
    page.write(f"</tbody>\n{_foot(table)}</table></div>\n</body>\n</html>\n")


def _head(title: str, table: Table) -> str:
    name = escape(title)
    about = f"{table.rows:,} rows, {len(table.columns)} columns, from {escape(table.path.name)}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{name}</h1>\n<p>{about}</p>\n"
    )


def _cards(table: Table) -> str:
    if not table.totals:
        return ""
    return f'<dl class="cards">\n{"".join(map(_card, table.totals.values()))}</dl>\n'


def _card(column: Column) -> str:
    mean = column.total / column.values
    details = f"{_text(column.least)} to {_text(column.most)}, mean {mean:,.2f}"
    return (
        f"<div><dt>{escape(column.name)}</dt><dd>{_text(column.total)}</dd>"
        f"<dd>{details}</dd></div>\n"
    )


def _row(table: Table, cells: Sequence[str], tag: str = "td", attributes: str = "") -> str:
    return (
        "<tr>"
        + "".join(
            f"<{tag}{attributes}{_align(table, name)}>{escape(cell)}</{tag}>"
            for name, cell in zip(table.columns, cells, strict=True)
        )
        + "</tr>"
    )


def _foot(table: Table) -> str:
    if not table.totals:
        return ""
    cells = [
        _text(table.totals[name].total) if name in table.totals else "" for name in table.columns
    ]
    if not cells[0]:
        cells[0] = "Total"
    return f"<tfoot>{_row(table, cells)}</tfoot>\n"


def _align(table: Table, name: str) -> str:
    return ' class="number"' if name in table.totals else ""


def _text(number: Decimal | None) -> str:
    return "" if number is None else f"{number:,}"
