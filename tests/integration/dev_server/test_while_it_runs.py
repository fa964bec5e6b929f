"""`asyncjob dev` in a project of one's own, while it runs."""

import json
import re
import subprocess
import urllib.request

import pytest

from integration.dev_server.project import HANDLERS, Project, Server
from support.driven.jobs import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def address(server: Server) -> str:
    [found] = re.findall(r"(http://127\.0\.0\.1:\d+)/dashboard/", server.said)
    return str(found)


def test_a_job_of_an_own_handler_succeeds_and_what_it_prints_is_shown(
    project: Project, server: Server
) -> None:
    assert project.greeting("world") == "Hello world"
    server.until_said("worker-1 | greeting world")


def test_the_dashboard_and_the_rest_api_are_where_it_says(project: Project, server: Server) -> None:
    project.greeting("somebody")
    with urllib.request.urlopen(f"{address(server)}/dashboard/") as page:
        assert b"somebody" in page.read() or page.status == 200
    with urllib.request.urlopen(f"{address(server)}/api/v1/jobs") as answer:
        jobs = json.load(answer)["items"]
    assert "greet" in {job["type"] for job in jobs}


def test_kubectl_works_as_the_guide_says(project: Project, server: Server) -> None:
    [export] = re.findall(r"^  (export KUBECONFIG=.*)$", server.said, re.MULTILINE)
    script = f"{export}; kubectl --cache-dir=.asyncjob/kubectl get asyncqueues,asyncjobs,pods"
    done = subprocess.run(
        ["sh", "-c", script], cwd=project.folder, capture_output=True, text=True, check=True
    )
    assert re.search(r"^pod/worker-1 +1/1 +Running", done.stdout, re.MULTILINE), done.stdout


def test_changed_code_is_what_runs_next(project: Project, server: Server) -> None:
    began = server.said.count("starting the workers again")
    project.handlers.write_text(HANDLERS.replace('f"Hello {', 'f"Good day {'))
    server.until_said("hello.py changed: starting the workers again", began + 1)
    server.until_said("worker started", began + 1)
    assert project.greeting("neighbour") == "Good day neighbour"


def test_a_mistake_in_the_code_is_told_and_the_old_code_goes_on_until_it_is_mended(
    project: Project, server: Server
) -> None:
    began = server.said.count("starting the workers again")
    code = project.handlers.read_text()
    project.handlers.write_text(f"{code}\ndef broken(:\n")
    server.until_said("cannot import hello: SyntaxError")
    assert "The workers go on with the code they have." in server.said
    assert project.greeting("still-there").endswith(" still-there")
    assert server.said.count("starting the workers again") == began
    project.handlers.write_text(HANDLERS.replace('f"Hello {', 'f"Mended {'))
    server.until_said("starting the workers again", began + 1)
    server.until_said("worker started", began + 1)
    assert project.greeting("once-more") == "Mended once-more"


def test_a_second_one_in_the_same_folder_is_told_which_process_has_it(
    project: Project, server: Server
) -> None:
    said = project.asyncjob("dev", "hello:app", code=1)
    assert f"already runs in {project.own}, as process {server.process.pid}" in said
    assert server.process.poll() is None


def test_a_worker_that_is_killed_is_started_again_and_told(
    project: Project, server: Server
) -> None:
    state = json.loads((project.own / "state.json").read_text())
    [pid] = [part["pid"] for part in state["parts"] if part["name"] == "worker-1"]
    subprocess.run(["kill", "-KILL", str(pid)], check=True)
    server.until_said("worker-1 ended and is started again")
    assert project.greeting("after-all").endswith(" after-all")


def test_all_that_it_writes_is_in_its_folder(project: Project, server: Server) -> None:
    assert server.process.poll() is None
    # Python keeps the compiled handlers beside them.
    names = {path.name for path in project.folder.iterdir()} - {"__pycache__"}
    assert names == {"hello.py", ".asyncjob"}
    until(lambda: list(project.commands.temporary.iterdir()) == [], 10, "an empty folder")
