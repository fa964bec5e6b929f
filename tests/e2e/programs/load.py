"""Runs in a pod: submits job after job through the gateway, each twice, until /tmp/enough is there.

What it prints last is its report: the job of each key, and what a client of the SDK was not spared.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from asyncjob import JobsClient
from asyncjob.errors import AsyncJobError

NAME = os.environ["LOAD"]
THREADS = 2
PAUSE_SECONDS = 0.1
SHORT_SECONDS = 0.2
LONG_SECONDS = 40.0
LONG = int(os.environ["LONG"])
"""So many long ones come first: a worker that is replaced meanwhile has to give them back."""

enough = threading.Event()
accepted: dict[str, str] = {}
failed: list[str] = []


def submit(jobs: JobsClient, key: str, seconds: float = SHORT_SECONDS) -> None:
    span, mark = {"seconds": seconds}, {"load": NAME}
    try:
        told = [jobs.submit("sleep", span, idempotency_key=key, labels=mark) for _ in range(2)]
    except AsyncJobError as error:
        failed.append(f"{key}: {type(error).__name__}: {error}")
        return
    if told[0].id != told[1].id or told[1].created:
        failed.append(f"{key}: {told}")
    accepted[key] = told[0].id


def go_on(jobs: JobsClient, thread: int) -> None:
    count = 0
    while not enough.wait(PAUSE_SECONDS):
        submit(jobs, f"{NAME}-{thread}-{count}")
        count += 1


with JobsClient() as client:
    for number in range(LONG):
        submit(client, f"{NAME}-long-{number}", LONG_SECONDS)
    threads = [threading.Thread(target=go_on, args=(client, n)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    while not Path("/tmp/enough").exists():
        time.sleep(0.1)
    enough.set()
    for thread in threads:
        thread.join()
sys.stdout.write(json.dumps({"accepted": accepted, "failed": failed}))
