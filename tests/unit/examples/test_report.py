"""The report handler: what the page holds, that nothing in it is markup, and what is refused."""

import hashlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from examples.handlers import report as module
from examples.handlers.report import ReportRequest, report_csv

from asyncjob import Fail
from unit.examples.notes import Notes, StartJob

ORDERS = 'item,count,price\n"Cable <2 m>",2,7.50\nSalt & pepper,1,1200\n"a ""b"", c",,0.01\n'


class Page(HTMLParser):
    """The cells of the table, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in {"td", "th"}:
            self.cells.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in {"td", "th"}

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


def request(target: str = "out/report.html", **more: object) -> ReportRequest:
    return ReportRequest.model_validate({"source": "orders.csv", "target": target, **more})


def page_of(folder: Path) -> str:
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


def test_the_page_holds_every_cell_and_the_totals(folder: Path, start: StartJob) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    report = report_csv(start(), request())
    page = Page(page_of(folder))
    assert page.cells[:3] == ["item", "count", "price"]
    assert page.cells[3:12] == [
        *("Cable <2 m>", "2", "7.50"),
        *("Salt & pepper", "1", "1200"),
        *('a "b", c', "", "0.01"),
    ]
    assert page.cells[12:] == ["Total", "3", "1,207.51"]
    assert report.rows == 3
    assert report.totals == {"count": "3", "price": "1207.51"}
    assert report.file == "out/report.html"
    assert report.sha256 == hashlib.sha256(page_of(folder).encode()).hexdigest()


def test_nothing_in_the_data_is_taken_for_markup(folder: Path, start: StartJob) -> None:
    evil = "<script>alert(1)</script>"
    (folder / "orders.csv").write_text(f'"{evil}","n"\n"</td>{evil}",1\n')
    report_csv(start(), request(title=f"</title>{evil}"))
    page = Page(page_of(folder))
    assert "script" not in page.tags
    assert page.cells[:3] == [evil, "n", f"</td>{evil}"]


def test_the_page_needs_nothing_from_elsewhere_and_knows_the_dark(
    folder: Path, start: StartJob
) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    report_csv(start(), request())
    text = page_of(folder)
    assert not {"link", "img", "script", "iframe"} & set(Page(text).tags)
    assert "http" not in text
    assert "prefers-color-scheme: dark" in text


def test_only_the_named_columns_are_added_up(folder: Path, start: StartJob) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    assert report_csv(start(), request(total=["price"])).totals == {"price": "1207.51"}


def test_a_table_without_numbers_has_no_totals(folder: Path, start: StartJob) -> None:
    (folder / "orders.csv").write_text("a,b\nx,nan\ny,inf\n")
    assert report_csv(start(), request()).totals == {}
    assert "tfoot" not in Page(page_of(folder)).tags


def test_progress_is_told_now_and_then_and_at_the_end(
    folder: Path, start: StartJob, notes: Notes
) -> None:
    rows = "".join(f"{number}\n" for number in range(2500))
    (folder / "orders.csv").write_text(f"n\n{rows}")
    report_csv(start(), request())
    assert notes.percents == [0, 40, 80, 100]


@pytest.mark.parametrize(
    ("content", "total", "message"),
    [
        ("", None, "no header line"),
        ("a,a\n1,2\n", None, "same name"),
        ("a,b\n1,2\n1,2,3\n", None, "line 3: 3 fields, the header has 2"),
        ("a,b\n1,2\n", ["c"], "no column 'c', only a, b"),
        ("a,b\n1,x\n", ["b"], "'b' is not numeric"),
    ],
)
def test_what_is_no_table_fails_for_good_and_says_where(
    folder: Path, start: StartJob, content: str, total: list[str] | None, message: str
) -> None:
    (folder / "orders.csv").write_text(content)
    with pytest.raises(Fail, match=message):
        report_csv(start(), request(total=total))
    assert not (folder / "out").exists()


@pytest.mark.parametrize("target", ["../report.html", "/tmp/report.html", "orders.csv"])
def test_an_output_elsewhere_or_of_another_kind_is_refused(
    folder: Path, start: StartJob, target: str
) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    with pytest.raises(Fail, match="target"):
        report_csv(start(), request(target))
    assert (folder / "orders.csv").read_text() == ORDERS


def test_a_failure_in_the_middle_leaves_the_old_report_and_no_draft(
    folder: Path, start: StartJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    report_csv(start(), request())
    before = page_of(folder)

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module, "write_page", fails)
    with pytest.raises(OSError, match="disk full"):
        report_csv(start(), request())
    assert page_of(folder) == before
    assert [file.name for file in (folder / "out").iterdir()] == ["report.html"]
