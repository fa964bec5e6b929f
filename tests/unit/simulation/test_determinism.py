"""Equal seeds and requests give equal bytes, whatever Python's own hashing does."""

import os
import subprocess
import sys
from typing import Any

from asyncjob.names import JOBS, collection_path
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.installation import ROOT
from support.in_memory.memory import memory_server
from support.objects.builders import job

PROGRAM = """
import hashlib, itertools, uuid
ids = itertools.count()
uuid.uuid4 = lambda: uuid.UUID(int=next(ids))  # ids of claims, which the tests choose by chance
from support.forbidden import CASES, ForbiddenSetup
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server

server = memory_server(seed=7)
said = hashlib.sha256()
handle = server.handle

def noted(request):
    answer = handle(request)
    said.update(answer.body)
    return answer

server.handle = noted
space = Space("same", memory_admin(server)).create()
setup = ForbiddenSetup(space, space.worker("w-0"), space.worker("w-1"), space.operator())
for case in CASES:
    if "a new pod of the holder's name" not in case.title:
        case.attempt(setup)
print(said.hexdigest())
"""


def run(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_two_processes_get_the_same_answers_to_the_byte() -> None:
    assert run("1") == run("2")


def created(seed: int) -> list[Any]:
    server: ApiServer = memory_server(seed=seed)
    body = {**job("x"), "metadata": {"generateName": "x-"}}
    return [server.create(collection_path("default", JOBS), body) for _ in range(3)]


def test_another_seed_gives_other_names_and_uids() -> None:
    assert created(1) == created(1)
    first, second = ({obj["metadata"]["uid"] for obj in created(seed)} for seed in (1, 2))
    assert not first & second
