"""Changes that break what a recorded history says of arrays, one for each of their rules."""

import copy
import itertools
from collections.abc import Callable, Iterator

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AuditRule
from asyncjob.names import ARRAY_LABEL
from support.objects.history_mutations import (
    Evidence,
    Line,
    Mutation,
    later,
    name_of,
    phase,
    status,
    successor,
)

MUTATIONS: list[tuple[AuditRule, Mutation]] = []


def breaks(rule: AuditRule) -> Callable[[Mutation], Mutation]:
    def add(mutation: Mutation) -> Mutation:
        MUTATIONS.append((rule, mutation))
        return mutation

    return add


def of_array(it: Evidence, name: str) -> list[Line]:
    """Return the versions of an array as a watch has shown them: a list may repeat the last one."""
    return [
        one
        for one in it.versions("asyncarrays")
        if name_of(one) == name and one["event"] != "LISTED"
    ]


def folds(it: Evidence, name: str) -> Iterator[tuple[Line, Line]]:
    """Yield two versions of the array in a row, by the second of which items count as done."""
    lines = of_array(it, name)
    for was, now in itertools.pairwise(lines):
        if status(now).get("succeeded", 0) > status(was).get("succeeded", 0):
            yield was, now


def chunks(it: Evidence) -> list[Line]:
    """Return the creations of chunks."""
    return [
        one
        for one in it.versions("asyncjobs")
        if one["event"] == "ADDED" and ARRAY_LABEL in one["object"]["metadata"].get("labels", {})
    ]


@breaks(catalog.ARRAY_CREATED)
def an_array_is_born_with_items_done(it: Evidence) -> None:
    status(of_array(it, "thumbs")[0])["succeeded"] = 1


@breaks(catalog.ARRAY_TRANSITION)
def an_array_succeeds_without_having_run(it: Evidence) -> None:
    lines = of_array(it, "long")
    it.drop([one for one in lines if phase(one) == "Running"])


@breaks(catalog.ARRAY_SPEC)
def the_items_of_an_array_change(it: Evidence) -> None:
    of_array(it, "thumbs")[-1]["object"]["spec"]["items"] = {"count": 41}


@breaks(catalog.ARRAY_COUNTS)
def done_items_are_forgotten(it: Evidence) -> None:
    _, now = next(folds(it, "long"))
    it.insert_after(now, successor(now, succeeded=0))


@breaks(catalog.ARRAY_ITEMS)
def an_item_is_nowhere(it: Evidence) -> None:
    _, now = next(folds(it, "thumbs"))
    status(now)["succeeded"] -= 1


@breaks(catalog.ARRAY_ONCE)
def a_done_item_is_to_be_run_again(it: Evidence) -> None:
    _, now = next(folds(it, "long"))
    done = status(now)["succeeded"]
    it.insert_after(now, successor(now, succeeded=done - 1, requeued="0"))


@breaks(catalog.ARRAY_FINAL)
def a_succeeded_array_changes(it: Evidence) -> None:
    last = of_array(it, "thumbs")[-1]
    it.insert_after(last, successor(last, message="forged"))


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_is_created_that_nobody_has_listed(it: Evidence) -> None:
    made = next(one for one in chunks(it) if name_of(one).startswith("thumbs-"))
    forged = copy.deepcopy(made)
    forged["object"]["metadata"] |= {"name": "thumbs-forged", "uid": "forged"}
    it.insert_after(made, forged)


@breaks(catalog.ARRAY_CHUNK_ENDED)
def a_chunk_ends_after_its_items_have_counted(it: Evidence) -> None:
    _, counted = next(folds(it, "thumbs"))
    names = {name_of(one) for one in chunks(it) if name_of(one).startswith("thumbs-")}
    listed = {entry["name"] for entry in status(counted).get("open", [])}
    ends = [
        one
        for one in it.versions("asyncjobs")
        if name_of(one) in names - listed and phase(one) == "Succeeded"
    ]
    version = int(counted["object"]["metadata"]["resourceVersion"])
    end = next(one for one in ends if int(one["object"]["metadata"]["resourceVersion"]) < version)
    gone = [one for one in it.of_job(name_of(end)) if one["event"] == "DELETED"]
    for one in (end, *gone):
        one["object"]["metadata"]["resourceVersion"] = str(version + 1)


@breaks(catalog.ARRAY_PARALLELISM)
def an_array_has_more_chunks_than_it_may(it: Evidence) -> None:
    made = next(one for one in chunks(it) if name_of(one).startswith("long-"))
    twins = [copy.deepcopy(made) for _ in range(2)]
    for number, twin in enumerate(twins):
        twin["object"]["metadata"] |= {"name": f"long-{number}", "uid": f"twin-{number}"}
    it.insert_after(made, *twins)


@breaks(catalog.ARRAY_LEFTOVER)
def a_chunk_outlives_its_array(it: Evidence) -> None:
    made = next(one for one in chunks(it) if name_of(one).startswith("gone-"))
    gone = next(one for one in it.of_job(name_of(made)) if one["event"] == "DELETED")
    gone["time"] = later(gone["time"], 5000)
