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
LONG_SECONDS = 10.0
LONG = int(os.environ["LONG"])
"""So many long ones are under way at any time: a worker that is replaced has to give some back."""

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


def keep_long_ones(jobs: JobsClient) -> None:
    for number in range(LONG):
        submit(jobs, f"{NAME}-long-{number}", LONG_SECONDS)
    count = LONG
    while LONG and not enough.wait(LONG_SECONDS / LONG):
        submit(jobs, f"{NAME}-long-{count}", LONG_SECONDS)
        count += 1


with JobsClient() as client:
    threads = [threading.Thread(target=go_on, args=(client, n)) for n in range(THREADS)]
    threads.append(threading.Thread(target=keep_long_ones, args=(client,)))
    for thread in threads:
        thread.start()
    while not Path("/tmp/enough").exists():
        time.sleep(0.1)
    enough.set()
    for thread in threads:
        thread.join()
sys.stdout.write(json.dumps({"accepted": accepted, "failed": failed}))
