"""Judges a change of a job by the audit's rules, and who wrote it.

Written by hand, not derived from the rules that the API server enforces: so it finds their errors.
"""

from collections.abc import Mapping
from typing import Any

from asyncjob.audit.job_rules import REPORTED, check_change, check_policy, check_version
from asyncjob.audit.job_version import read_job_version
from asyncjob.json_types import JsonObject

Obj = Mapping[str, Any]


def change_violations(before: JsonObject, after: JsonObject) -> list[str]:
    """Return, for two versions of a job in a row, each rule that is broken and how, in words."""
    was, now = read_job_version(before, 0.0, 0.0), read_job_version(after, 0.0, 0.0)
    found = [*check_version(now), *check_change(was, now), *check_policy(was, now, after)]
    return [f"{rule.id}: {message}" for rule, message in found]


def misuse(before: Obj, after: Obj, pod_uid: str) -> list[str]:
    """Return what is wrong with a worker's having made the change."""
    was, now = before["status"], after["status"]
    if was == now:
        return []
    holder = (was.get("lease") or now.get("lease") or {}).get("holderUID")
    return [] if holder == pod_uid else [f"{pod_uid} wrote a job that {holder} holds"]


def overreach(before: Obj, after: Obj) -> list[str]:
    """Return what is wrong with an operator's having made the change."""
    was, now = before["status"], after["status"]
    if now["phase"] in {"Running", "Succeeded"} and was["phase"] != now["phase"]:
        return [f"an operator has made a job {now['phase']}"]
    if was["phase"] != "Running":
        return []
    if now["phase"] == "Running":
        changed = {**was, "reruns": 0} != {**now, "reruns": 0}
        return ["an operator has changed a running job"] if changed else []
    if any(was.get(field) != now.get(field) for field in ("checkpoint", "progress")):
        return ["an operator has changed the work of a job that it took away"]
    reason = now["reason"]
    return [f"an operator has ended an attempt for {reason}"] if reason in REPORTED else []
