"""The demo as people run it: what it shows, that it notices failure, and what it leaves behind."""

import csv
import re
import shutil
import signal
import time
from html import unescape
from pathlib import Path

import pytest

from support.processes.commands import ROOT, Commands

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]

REPORT = ROOT / ".dev" / "out" / "orders.html"
SCENARIOS = (
    *("digest-files", "report-orders", "flaky-call", "always-fails", "slow-count", "mistake"),
    *("fulfil-order", "release-shop", "check-rows"),
)


def verdicts(output: str) -> dict[str, str]:
    """Return yes or NO by job, as the summary has it."""
    rows = [line.split() for line in output.splitlines() if re.match(r"\([a-h]\)  \S", line)]
    return {row[1]: row[-1] for row in rows}


def test_the_demo_shows_and_checks_every_scenario_and_leaves_nothing_behind(
    commands: Commands,
) -> None:
    REPORT.unlink(missing_ok=True)
    done = commands.run("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done.stdout) == dict.fromkeys(SCENARIOS, "yes")
    assert "\x1b" not in done.stdout
    # Not that it is seen Retrying: between two looks a slow machine may be past that.
    assert re.search(r"kill -KILL \d+: \S+ is gone, with slow-count at step \d+", done.stdout)
    assert "spec.retryPolicy.maxRetries" in done.stdout
    assert re.search(r"\n *check-rows +Succeeded +order.check +24 +23 +1 ", done.stdout)
    assert re.search(
        r"\n *item 17: record 17 \(at byte \d+\) has 4 fields, the header 8\n", done.stdout
    )
    assert str(REPORT.relative_to(ROOT)) in done.stdout
    assert commands.running() == []
    assert list(commands.temporary.iterdir()) == []


def test_the_report_that_the_demo_names_holds_the_orders(commands: Commands) -> None:
    if not REPORT.exists():
        assert commands.run("demo").returncode == 0
    page = unescape(REPORT.read_text(encoding="utf-8"))
    with (ROOT / "examples" / "data" / "orders.csv").open(encoding="utf-8", newline="") as source:
        orders = list(csv.DictReader(source))
    assert page.count("<tr>") == len(orders) + 2
    for order in orders:
        assert f">{order['order']}<" in page
        assert f">{order['product']}<" in page
    assert f"{sum(float(order['amount']) for order in orders):,.2f}" in page


def test_the_demo_fails_and_says_why_when_a_job_does_not_go_as_it_should(
    commands: Commands, tmp_path: Path
) -> None:
    examples = Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))
    flaky, mistake = examples / "flaky-call.yaml", examples / "mistake.yaml"
    flaky.write_text(flaky.read_text().replace("failures: 2", "failures: 9"))
    mistake.write_text(mistake.read_text().replace("-1", "1"))
    done = commands.run("demo", "--examples", str(examples))
    assert done.returncode == 1, done.stdout + done.stderr
    wrong = {"flaky-call": "NO", "mistake": "NO"}
    assert verdicts(done.stdout) == {**dict.fromkeys(SCENARIOS, "yes"), **wrong}
    assert "(b) flaky-call: phase is DeadLetter, not Succeeded" in done.stdout
    assert "(e) mistake: kubectl apply ended with 0" in done.stdout
    assert "--- asyncjob flaky-call\napiVersion:" in done.stdout
    assert "--- the end of operator.log" in done.stdout
    assert commands.running() == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 130),
        (signal.SIGKILL, -9),
    ],
)
def test_a_demo_that_is_cut_short_leaves_nothing_running(
    commands: Commands, number: signal.Signals, code: int
) -> None:
    with commands.start("demo") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "slow-count" in line and "Running" in line:
                break
        assert len(commands.running()) > 5
        process.send_signal(number)
        started = time.monotonic()
        process.communicate(timeout=30)
    assert time.monotonic() - started < 20
    assert process.returncode == code
    commands.await_none_running()
