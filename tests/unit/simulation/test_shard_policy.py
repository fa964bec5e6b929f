"""The API server in memory labels applied jobs with their shard, as a real one does."""

from asyncjob.names import JOBS, SHARD_LABEL, collection_path
from asyncjob.rules.mutation import shard_manifests
from asyncjob.rules.policy import ADMISSION_API_VERSION
from asyncjob.shards import shard_of
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import job


def test_jobs_with_a_name_and_no_shard_are_labelled() -> None:
    admin = memory_admin(memory_server())
    Space("work", admin).create()
    plurals = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    for plural, body in zip(plurals, shard_manifests(), strict=True):
        admin.create(f"/apis/{ADMISSION_API_VERSION}/{plural}", body).object()
    path = collection_path("work", JOBS)
    assert admin.create(path, job("a")).object()["metadata"]["labels"] == {
        SHARD_LABEL: str(shard_of("a"))
    }
    labelled = job("b")
    labelled["metadata"]["labels"] = {SHARD_LABEL: "none"}
    assert admin.create(path, labelled).object()["metadata"]["labels"] == {SHARD_LABEL: "none"}
    unnamed = job("c")
    unnamed["metadata"] = {"generateName": "c-"}
    assert "labels" not in admin.create(path, unnamed).object()["metadata"]
