"""Every template, filled in with what an attacker would like it to be filled in with."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.array import (
    ArrayItems,
    AsyncArraySpec,
    AsyncArrayStatus,
    ItemFailure,
    ItemsSource,
)
from asyncjob.models.job_status import JobError, Progress, Waiting
from asyncjob.rest.arrays import ArrayInfo, ArrayPage
from asyncjob.rest.job_records import SignalInfo
from asyncjob.rest.jobs import Job, Link, Page
from asyncjob.rest.listing import BulkFailure, BulkReport
from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo
from asyncjob_gateway import problem_types
from asyncjob_gateway.dashboard.formatting import MAX_JSON_CHARS
from asyncjob_gateway.dashboard.layout import Frame, render_html
from asyncjob_gateway.dashboard.links import MEDIA_TYPES, Links, assets
from asyncjob_gateway.dashboard.pages.dead_letters import (
    bulk_report_page,
    confirmation_page,
    read_bulk_form,
)
from asyncjob_gateway.dashboard.pages.jobs import make_job_list
from asyncjob_gateway.dashboard.pages.queues import QueueCounts, make_queues_page
from asyncjob_gateway.dashboard.pages.sign_in import SignInPage
from asyncjob_gateway.dashboard.pages.submit import SubmitForm
from asyncjob_gateway.dashboard.permissions import Permissions
from asyncjob_gateway.dashboard.views.arrays import make_array_list, make_array_page
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.dashboard.views.job import NotCreatedPage, make_job_page
from asyncjob_gateway.dashboard.views.job_tree import LinkedJob, job_tree
from asyncjob_gateway.dashboard.views.resources import cron_rows, worker_rows
from asyncjob_gateway.errors import RefusedError
from support.objects.rest_jobs import NOW, before, happened, summary, whole

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
EVIL_SCHEMA: Any = {
    "title": EVIL,
    "description": EVIL,
    "properties": {
        EVIL: {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL},
        f"{EVIL}2": {"enum": [EVIL], "title": EVIL},
        f"{EVIL}3": {"type": "number", "minimum": EVIL, "maximum": EVIL, "description": EVIL},
    },
    "type": "object",
    "required": [EVIL],
}
ALL = Permissions(**dict.fromkeys(Permissions.__dataclass_fields__, True))
LINKS = Links("team")
FRAME = Frame(
    links=LINKS,
    namespace="team",
    namespaces=("main", "team"),
    allowed=ALL,
    now=NOW,
    caller=EVIL,
    can_sign_out=True,
    form_token=EVIL,
    did=EVIL,
    dead_letters=3,
    assets="/static",
)
ERROR = JobError(type=EVIL, category="Other", message=EVIL)
PROGRESS = Progress(percent=5, message=EVIL)
VOID = frozenset({"meta", "link", "input", "br", "rect", "option"})


def evil_job(phase: Phase) -> Job:
    return whole(
        EVIL,
        phase,
        type=EVIL,
        queue=EVIL,
        reason=EVIL,
        message=EVIL + "!",
        worker=EVIL,
        error=ERROR,
        progress=PROGRESS,
        started_at=before(5),
        labels={EVIL: EVIL},
        payload={EVIL: EVIL},
        result=EVIL,
        checkpoint=EVIL,
        parent=Link(name=EVIL),
        waiting=[
            Waiting(kind="Signal", key=EVIL[:128], payload_schema=EVIL_SCHEMA),
            Waiting(kind="Signal", key=EVIL[:120], payload_schema={"title": EVIL, EVIL: EVIL}),
        ],
        signals=[SignalInfo(name=EVIL, sent_by=EVIL, sent_at=EVIL, payload={EVIL: EVIL})],
        idempotency_key=EVIL,
        history=[happened(9, Phase.QUEUED, ran=1, message=EVIL, worker=EVIL, reason=EVIL)],
        history_omitted=2,
    )


def evil_array(phase: ArrayPhase) -> ArrayInfo:
    spec = AsyncArraySpec.model_construct(
        type=EVIL,
        queue=EVIL,
        items=ArrayItems.model_construct(from_=ItemsSource.model_construct(uri=EVIL)),
        payload={EVIL: EVIL},
    )
    failure = ItemFailure.model_construct(item=3, type=EVIL, category=EVIL, message=EVIL)
    status = AsyncArrayStatus(failed_items="3", failed_unlisted=2, next=5)
    return ArrayInfo(
        name=EVIL,
        namespace="n",
        uid=EVIL,
        type=EVIL,
        queue=EVIL,
        phase=phase,
        reason=EVIL,
        message=EVIL + "!",
        total=10,
        succeeded=2,
        failed=3,
        open_chunks=1,
        suspended=True,
        labels={EVIL: EVIL},
        created_at=before(100),
        started_at=before(90),
        spec=spec,
        status=status.model_copy(update={"errors": [failure]}),
    )


def evil_pages() -> dict[str, str]:
    filters = read_filters(QueryParams({"text": EVIL, "newer": EVIL, "label": EVIL}))
    page = Page(items=[evil_job(phase) for phase in Phase], next=EVIL, total=99)
    jobs = make_job_list(page, filters, LINKS, NOW, path="/jobs", cursor=EVIL)
    asked = read_bulk_form({"action": ["redrive"], "id": [EVIL], "filters": [EVIL]})
    assert asked
    done = BulkReport(matched=9, done=[EVIL], failed=[BulkFailure(id=EVIL, detail=EVIL)])
    queue = QueueInfo(name=EVIL, namespace="n", configured=True, paused=True, counts={"Queued": 1})
    cron = CronJobInfo(
        name=EVIL,
        namespace="n",
        schedule=EVIL,
        time_zone=EVIL,
        type=EVIL,
        queue=EVIL,
        message=EVIL,
        reason=EVIL,
        next_scheduled_at=before(-60),
    )
    worker = WorkerInfo(
        name=EVIL,
        namespace="n",
        pod=EVIL,
        queue=EVIL,
        slots=1,
        types=[EVIL],
        version=EVIL,
        seen_at=before(1),
    )
    members = job_tree(
        EVIL,
        [LinkedJob(summary(EVIL)), LinkedJob(summary("b", type=EVIL), EVIL)],
        LINKS,
        NOW,
    )
    problem = RefusedError(
        problem_types.INVALID, EVIL, job_id=EVIL, errors=[FieldProblem(field=EVIL, detail=EVIL)]
    )
    arrays = ArrayPage(items=[evil_array(phase) for phase in ArrayPhase], next=EVIL, total=99)
    pages = {
        "arrays.html": make_array_list(arrays, LINKS, NOW, cursor=EVIL),
        "jobs.html": jobs,
        "dead_letters.html": jobs,
        "queues.html": make_queues_page([queue], QueueCounts({EVIL: before(5)}), LINKS, NOW),
        "cron_jobs.html": cron_rows([cron], LINKS, NOW),
        "workers.html": worker_rows([worker], LINKS, NOW),
        "confirm.html": confirmation_page(asked, done, LINKS),
        "report.html": bulk_report_page(asked, done, LINKS),
        "soon.html": NotCreatedPage(EVIL, LINKS.job(EVIL)),
        "sign_in.html": SignInPage(EVIL, EVIL, in_the_clear=True),
        "problem.html": problem,
    }
    made = {name: render_html(name, FRAME, view) for name, view in pages.items()}
    for kind in (problem_types.UNAVAILABLE, problem_types.CONFLICT, problem_types.FORBIDDEN):
        here = f"/dashboard/jobs?{EVIL}"
        made[f"problem.html {kind.slug}"] = render_html(
            "problem.html", FRAME, RefusedError(kind, EVIL), here=here
        )
        made["arriving.html"] = render_html("arriving.html", FRAME, here)
    for phase in Phase:
        view = make_job_page(evil_job(phase), members, ALL, LINKS, NOW, may_signal=True)
        made[f"job.html {phase}"] = render_html("job.html", FRAME, view)
    for array_phase in ArrayPhase:
        array = make_array_page(evil_array(array_phase), ALL, LINKS, NOW)
        made[f"array.html {array_phase}"] = render_html("array.html", FRAME, array)
    form = SubmitForm({"type": EVIL, "payload": "\n" + EVIL}, {"payload": EVIL}, EVIL)
    made["submit.html"] = render_html("submit.html", FRAME, form, queues=[EVIL], types=[EVIL])
    return made


PAGES = evil_pages()


class Reader(HTMLParser):
    """Collects what would act in a browser, and whether all elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.acting: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and not str(given.get("src")).startswith("/static/"):
            self.acting.append(tag)
        self.acting += [name for name in given if name.startswith("on") or name == "style"]
        self.acting += [tag] * (tag in {"img", "iframe", "object", "style", "base"})
        self.acting += [
            str(given[name])
            for name in ("href", "action", "src")
            if name in given and not str(given[name]).startswith(("/", "#"))
        ]
        if "id" in given:
            self.ids.append(str(given["id"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.mark.parametrize("name", PAGES)
def test_whatever_is_in_it_stays_text(name: str) -> None:
    reader = Reader()
    reader.feed(PAGES[name])

    assert reader.acting == []
    assert "<script>alert" not in PAGES[name]
    assert "49" not in re.sub(r"\d{4}-\d\d-\d\dT[\d:.]*Z", "", PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed(name: str) -> None:
    reader = Reader()
    reader.feed(PAGES[name])

    assert reader.wrong == []
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))


def test_the_form_of_a_signal_names_the_job_that_is_shown_and_a_long_one_is_marked_as_cut() -> None:
    sent = [SignalInfo(name="go", sent_by="ada", payload=["x" * MAX_JSON_CHARS])]
    job = whole("j", Phase.PENDING, uid="uid-of-j", signals=sent)
    view = make_job_page(job, [], ALL, LINKS, NOW, may_signal=True)
    page = render_html("job.html", FRAME, view)
    [form] = re.findall(
        r'<form method="post" action="[^"]*/signal[^"]*".*?</form>', page, re.DOTALL
    )
    assert '<input type="hidden" name="uid" value="uid-of-j">' in form
    assert page.count("Cut here; REST has the whole of it") == 1


def test_every_form_that_changes_something_carries_the_forms_token() -> None:
    for page in PAGES.values():
        forms = re.findall(r'<form method="post".*?</form>', page, re.DOTALL)
        assert all('name="form-token"' in form for form in forms)


@pytest.mark.parametrize("phase", ArrayPhase)
def test_those_who_may_nothing_with_arrays_are_offered_nothing(phase: ArrayPhase) -> None:
    frame = replace(FRAME, allowed=Permissions(), can_sign_out=False)
    array = make_array_page(evil_array(phase).without_payload(), Permissions(), LINKS, NOW)

    page = render_html("array.html", frame, array)

    assert '<form method="post"' not in page
    assert "read-payload" in page
    assert "Its chunks" not in page


@pytest.mark.parametrize("phase", Phase)
def test_those_who_may_nothing_are_offered_nothing(phase: Phase) -> None:
    frame = replace(FRAME, allowed=Permissions(), can_sign_out=False)

    page = render_html(
        "job.html", frame, make_job_page(whole(phase=phase), [], Permissions(), LINKS, NOW)
    )

    assert '<form method="post"' not in page
    assert "read-payload" in page
    assert page.count("<nav") == 0


def test_a_notice_is_one_of_ours() -> None:
    assert replace(FRAME, did="redriven").notice == "Redrive requested."
    assert FRAME.notice == ""


def test_the_style_sheet_and_the_scripts_load_nothing_from_elsewhere() -> None:
    assert {"app.js", "style.css", "icon.svg", "theme.js"} <= set(assets())
    for name, content in assets().items():
        text = content.decode()
        assert name.rpartition(".")[2] in MEDIA_TYPES
        assert "url(" not in text
        assert "@import" not in text
        addresses = set(re.findall(r"https?://[^\"' ]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}
