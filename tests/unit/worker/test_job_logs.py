"""What is logged for a job names job, attempt and trace, in each format and by libraries too."""

import logging
from typing import get_args

import pytest

from asyncjob.logs import LogFormat, configure_logging
from asyncjob_worker.execution.attempt import job_info_of
from asyncjob_worker.tracing import job_log_context
from support.parts.worker_parts import held

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("style", get_args(LogFormat))
def test_a_librarys_line_names_them_inside_and_nothing_after(
    style: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(style)
    library = logging.getLogger("some.library")
    with job_log_context(
        job_info_of(held(attempt=3, spec={"traceparent": f"00-{TRACE_ID}-{'cd' * 8}-01"}))
    ):
        library.warning("inside")
    library.warning("after")
    inside, after = capsys.readouterr().err.splitlines()
    pairs = {
        "json": ('"attempt": 3', f'"trace_id": "{TRACE_ID}"', '"job": "'),
        "text": ("attempt=3", f"trace_id={TRACE_ID}", "job="),
    }
    assert all(pair in inside for pair in pairs[style]), inside
    assert not any(pair in after for pair in pairs[style]), after
