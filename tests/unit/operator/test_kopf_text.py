"""What kopf is given to read."""

import json
from typing import Any

import orjson
import pytest

from asyncjob.json_types import as_object
from asyncjob.lifecycle.job_view import read_job
from asyncjob_operator.core.schedules.view import read_cron_job
from asyncjob_operator.kube.kopf_text import MAX_PASSED_BYTES, readable_line, readable_page
from support.objects import builders
from support.objects.schedules import raw_cron

DEEP = '{"f:a":' * 1100 + "{}" + "}" * 1100
PLACES = {
    "managedFields": '{"metadata": {"name": "n", "managedFields": [{"fieldsV1": %s}]}, "spec": {}}',
    "payload": '{"metadata": {"name": "n"}, "spec": {"payload": %s}}',
    "jobTemplate": '{"metadata": {"name": "n"}, "spec": {"jobTemplate": {"spec": %s}}}',
    "result": '{"metadata": {"name": "n"}, "spec": {}, "status": {"result": %s}}',
    "said": '{"metadata": {"name": "n"}, "spec": {"signals": {"go": {"payload": {"said": %s}}}}}',
    "steps": '{"metadata": {"name": "n"}, "spec": {}, "status": {"steps": {"a": {"result": %s}}}}',
}


def line(obj: Any, kind: str = "ADDED") -> bytes:
    return orjson.dumps({"type": kind, "object": obj})


def test_a_line_that_is_short_and_not_deep_is_shown_to_kopf_as_it_is() -> None:
    text = line({"spec": {"payload": [{"a": {}}] * 90}})
    assert readable_line(text) is text


@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_an_event_is_too_deep_for_kopf(place: str) -> None:
    text = f'{{"type": "ADDED", "object": {PLACES[place] % DEEP}}}'
    seen = json.loads(readable_line(text.encode()))
    assert (seen["type"], seen["object"]["metadata"]) == ("ADDED", {"name": "n"})
    assert place not in json.dumps(seen["object"])


@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_a_page_is_too_deep_for_kopf(place: str) -> None:
    page = readable_page(f'{{"kind": "List", "items": [{PLACES[place] % DEEP}]}}'.encode())
    [obj] = json.loads(json.dumps(page))["items"]
    assert obj["metadata"] == {"name": "n"}


def test_after_any_error_within_a_watch_kopf_lists_again() -> None:
    text = line({"kind": "Status", "code": 500, "message": "etcdserver: no leader"}, "ERROR")
    seen = json.loads(readable_line(text))
    assert (seen["type"], seen["object"]["code"]) == ("ERROR", 410)


@pytest.mark.parametrize("text", ['{"type": "BOOKMARK"}', '{"type": "ADDED", "object": null}'])
def test_an_event_without_an_object_is_left_as_it_is(text: str) -> None:
    wide = text[:-1] + ', "x": [' + "{}," * 300 + "{}]}"
    assert json.loads(readable_line(wide.encode())) == json.loads(wide)


def test_of_what_is_large_all_is_shown_that_the_operator_knows_it_by() -> None:
    large = {"text": "x" * MAX_PASSED_BYTES}
    sent = {"go": {"sentBy": "ada", "payload": large}}
    job = builders.job("large", payload=large, signals=sent)
    job["status"] = {"phase": "Pending", "waiting": [{"kind": "Signal", "key": "go"}]}
    job["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    schedule = raw_cron("large", jobTemplate={"spec": {"type": "t", "payload": large}})
    for obj, read in ((job, read_job), (schedule, read_cron_job)):
        shown = readable_line(line(obj))
        assert len(shown) < MAX_PASSED_BYTES
        view: Any = read
        assert view(as_object(json.loads(shown)["object"])) == view(obj)
    assert [wait.sent for wait in read_job(job).waiting] == [True]
