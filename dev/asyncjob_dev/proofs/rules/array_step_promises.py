"""What is promised of each step from a version of an array to the next, without the rules.

The formulas read fields of both versions and ask who has written; they know nothing of CEL.
"""

from typing import Final, cast

import z3

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.models.array import AsyncArraySpec
from asyncjob.rules.array_policies import ARRAY_CONTROL_FIELDS
from asyncjob_dev.proofs.rules.array_versions import (
    ENDED,
    chunks,
    count,
    notation_of,
    open_items,
    total_of,
)
from asyncjob_dev.proofs.rules.intervals import items_of
from asyncjob_dev.proofs.rules.symbols import (
    Bool,
    Code,
    Number,
    Record,
    all_of,
    any_of,
    implies,
    is_same_entry,
    negation,
)
from asyncjob_dev.proofs.rules.versions import Promise, Seen, Step


def is_redriven(step: Step) -> Bool:
    """Return that a failed array goes on."""
    return all_of(
        step.was.phase(ArrayPhase.FAILED), step.now.phase(ArrayPhase.RUNNING, ArrayPhase.PENDING)
    )


def _phases_go_on(step: Step) -> Bool:
    """Return that a final phase stays, and that Pending is left for good but by a redrive."""
    again = all_of(is_redriven(step), cast("Bool", count(step.now, "generation") == 0))
    return all_of(
        implies(step.was.phase(ArrayPhase.SUCCEEDED, ArrayPhase.CANCELLED), step.kept_phase),
        implies(step.was.phase(ArrayPhase.FAILED), any_of(step.kept_phase, is_redriven(step))),
        implies(
            all_of(step.now.phase(ArrayPhase.PENDING), negation(step.kept_phase)),
            again,
        ),
    )


def _ended_is_frozen(step: Step) -> Bool:
    status = cast("Record", step.was.entry("status").value)
    explained = ("reason", "message", "redrives")
    most = step.kept(*(f"status.{name}" for name in status.fields if name not in explained))
    rest = step.kept(*(f"status.{name}" for name in explained))
    stays = all_of(step.was.phase(*ENDED), step.kept_phase)
    return implies(
        stays,
        all_of(most, implies(step.was.phase(ArrayPhase.SUCCEEDED, ArrayPhase.CANCELLED), rest)),
    )


def _grows(step: Step, name: str) -> Bool:
    return cast("Bool", count(step.now, name) >= count(step.was, name))


def _counts_grow(step: Step) -> Bool:
    begun_again = all_of(is_redriven(step), cast("Bool", count(step.now, "failed") == 0))
    return all_of(
        *(_grows(step, name) for name in ("next", "succeeded", "generation")),
        any_of(_grows(step, "failed"), begun_again),
    )


def _facts_of_the_file_stay(step: Step) -> Bool:
    known = cast("Bool", count(step.was, "total") > 0)
    same = cast("Bool", count(step.was, "total") == count(step.now, "total"))
    return all_of(
        implies(known, same),
        implies(step.was.has("status.index"), step.kept("status.index")),
        implies(step.was.flag("status.admitted"), step.now.flag("status.admitted")),
    )


def _same_chunk(was: Seen, now: Seen) -> Bool:
    fixed = all_of(
        *(is_same_entry(was.entry(name), now.entry(name)) for name in ("name", "items", "suspect"))
    )
    uid = is_same_entry(was.entry("uid"), now.entry("uid"))
    return all_of(fixed, implies(was.has("uid"), uid))


def _chunks_are_kept(step: Step) -> Bool:
    """Return that a chunk stays as it was listed, and that none comes back that had left."""
    newest, said = count(step.was, "generation"), []
    for there, now in chunks(step.now):
        generation = now.number("generation")
        known = []
        for also, was in chunks(step.was):
            same = all_of(also, cast("Bool", was.number("generation") == generation))
            said.append(implies(all_of(there, same), _same_chunk(was, now)))
            known.append(same)
        is_new = cast("Bool", generation > newest)
        said.append(implies(there, any_of(is_new, *known)))
    return all_of(*said)


def _only_chunks_succeed(step: Step) -> Bool:
    """Return that no more items become done than left open with their chunk, or were skipped."""
    newest = count(step.was, "generation")
    stayed = total_of(
        (
            all_of(there, cast("Bool", chunk.number("generation") <= newest)),
            items_of(notation_of(chunk)),
        )
        for there, chunk in chunks(step.now)
    )
    skip = step.now.entry("spec.items.skip")
    skips = all_of(skip.present, cast("Bool", cast("Code", skip.value).code != 0))
    passed = z3.If(skips, count(step.now, "next") - count(step.was, "next"), 0)
    grown = cast("Number", count(step.now, "succeeded") - count(step.was, "succeeded"))
    return cast("Bool", grown <= open_items(step.was) - stayed + passed)


def _held_cuts_nothing(step: Step) -> Bool:
    held = any_of(step.now.flag("spec.suspend"), step.now.flag("spec.cancel"))
    same = (
        cast("Bool", count(step.was, name) == count(step.now, name))
        for name in ("next", "generation")
    )
    return implies(held, all_of(*same))


def _redrive_is_asked(step: Step) -> Bool:
    before, after = count(step.was, "redrives"), count(step.now, "redrives")
    same = cast("Bool", after == before)
    asked = all_of(
        cast("Bool", after > before),
        cast("Bool", after == step.now.number("spec.redrive")),
        step.was.phase(ArrayPhase.FAILED),
    )
    return all_of(any_of(same, asked), implies(is_redriven(step), asked))


def _submission_is_fixed(step: Step) -> Bool:
    names = (field.alias or key for key, field in AsyncArraySpec.model_fields.items())
    return step.kept(*(f"spec.{name}" for name in names if name not in ARRAY_CONTROL_FIELDS))


def _requests_grow(step: Step) -> Bool:
    redrives = [version.number("spec.redrive") for version in (step.was, step.now)]
    return all_of(
        implies(step.was.flag("spec.cancel"), step.now.flag("spec.cancel")),
        cast("Bool", redrives[1] >= redrives[0]),
    )


def _failed_is_not_cancelled(step: Step) -> Bool:
    asked = all_of(step.now.flag("spec.cancel"), negation(step.was.flag("spec.cancel")))
    again = cast("Bool", step.now.number("spec.redrive") > count(step.was, "redrives"))
    return implies(all_of(asked, step.was.phase(ArrayPhase.FAILED)), again)


ARRAY_STEPS: Final = {
    "phases": Promise(
        "Succeeded and Cancelled are final; only a redrive leaves Failed, and it goes back to "
        "Pending only while no chunk was cut.",
        of_step=_phases_go_on,
    ),
    "frozen": Promise(
        "Nothing of an array that has ended changes, but reason, message and redrives of a failed "
        "one.",
        of_step=_ended_is_frozen,
    ),
    "grow": Promise(
        "next, succeeded, failed and generation never shrink, but failed by a redrive, to 0.",
        of_step=_counts_grow,
    ),
    "stay": Promise(
        "total, index and admission stay once they are there.", of_step=_facts_of_the_file_stay
    ),
    "chunks": Promise(
        "A chunk stays in open as it came, but for its UID, which is set once; none comes back.",
        of_step=_chunks_are_kept,
    ),
    "done": Promise(
        "No more items become done than were in chunks that leave open, or are skipped.",
        of_step=_only_chunks_succeed,
    ),
    "held": Promise(
        "No chunk is cut of a suspended or cancelled array.", of_step=_held_cuts_nothing
    ),
    "redrive": Promise(
        "A redrive happens once for each request, and only of a failed array.",
        of_step=_redrive_is_asked,
    ),
    "operators": Promise(
        "Only who may operate writes the status.",
        of_step=lambda step: any_of(step.kept("status"), step.operates),
    ),
    "submission": Promise("What was submitted never changes.", of_step=_submission_is_fixed),
    "requests": Promise("A request is not taken back.", of_step=_requests_grow),
    "too-late": Promise(
        "A failed array is not cancelled, unless it is redriven.",
        of_step=_failed_is_not_cancelled,
    ),
}
"""Promises about each step of an array from a version to the next."""
