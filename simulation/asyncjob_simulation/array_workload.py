"""Arrays, and what people do with them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.names import API_VERSION, ARRAY_LABEL, ARRAYS, GROUP, JOBS, collection_path, job_path
from asyncjob.names import array_path as path_of
from asyncjob_simulation.array_rules import ENDED
from asyncjob_simulation.clocks import time_text
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.event_loop import FIRST_MOMENT
from asyncjob_simulation.item_runs import ISOLATED_ITEMS, ITEMS, ItemRuns
from asyncjob_simulation.item_store import RESULTS
from asyncjob_simulation.workload import PEOPLE, Workload

Object = dict[str, Any]

_MOST: Final = 14
"""Items of an array."""

_REDRIVE_SECONDS: Final = 20.0
"""How often those who redrive arrays look for one."""

_OTHER_JOBS: Final = 3
"""One of so many jobs of other lives is beside the arrays."""

_WITH_RESULTS: Final = 0.6
"""Share of the arrays that keep what their items return."""

_WAITING: Final = 0.25
"""Share of the arrays, and of the jobs beside them, that start after an array or a job."""


@dataclass
class ArrayWorkload(Workload):
    """Arrays beside a few jobs."""

    runs: ItemRuns = field(kw_only=True)

    def begin(self) -> None:
        """Create queues, and plan all the rest."""
        self.jobs = max(1, self.jobs // _OTHER_JOBS)
        super().begin()
        dice = self.dice
        for number in range(dice.number("arrays", 1, 2 if self.swarm.is_small else 4)):
            at = dice.between(f"array {number} at", 0.0, self.seconds)
            self._later(at, self._create_array, number)
        for number in range(dice.number("changes of arrays", 0, 2 if self.swarm.is_small else 6)):
            at = dice.between(f"array change {number} at", 1.0, 3 * self.seconds)
            self._later(at, self._change_array, f"array change {number}")
        for number in range(self._redrives):
            self._later(number * _REDRIVE_SECONDS, self._redrive_some, f"array redrive {number}")

    def end(self) -> None:
        """Let all go on that people have stopped."""
        super().end()
        for array in self._arrays():
            if array["spec"].get("suspend"):
                self._patch(_path(array), {"suspend": False})
        for number in range(self._redrives):
            self._redrive_some(f"array redrive {number} in the end")

    @property
    def _redrives(self) -> int:
        """How many people look for arrays to redrive."""
        return self.dice.number("redrives of arrays", 0, 3)

    def _create_array(self, number: int) -> None:
        dice, name = self.dice, f"array {number}"
        count = dice.number(f"{name} items", 1, _MOST)
        items: Object = {"count": count}
        if dice.happens(f"{name} inline", 0.3):
            items = {"inline": [f"item {item}" for item in range(count)]}
        spec: Object = {
            "type": ISOLATED_ITEMS if self._is_isolated(name) else ITEMS,
            "queue": dice.choice(f"{name} queue", self.queues),
            "items": items,
            "chunkSize": dice.number(f"{name} chunk size", 1, 6),
            "parallelism": dice.number(f"{name} parallelism", 1, 4),
            "itemRetries": dice.choice(f"{name} item retries", (0, 1)),
            "leaseDurationSeconds": dice.choice(f"{name} lease", self.swarm.leases),
            "retryPolicy": {
                "maxRetries": 6,
                "maxCrashes": dice.choice(f"{name} crashes", (0, 1, 20)),
                "initialDelaySeconds": dice.choice(f"{name} delay", self.swarm.retry_delays),
                "maxDelaySeconds": 2,
            },
            "payload": {
                "pause": round(dice.between(f"{name} pause", 0.0, 3.0), 3),
                "failing": self._some(f"{name} failing", count, 0.3),
                # What ends a worker costs its other jobs an attempt.
                "killing": self._some(f"{name} killing", count, 0.3 * (not self.swarm.is_gentle)),
            },
        }
        if dice.happens(f"{name} keeps results", _WITH_RESULTS):
            spec["results"] = {"uri": str(RESULTS)}
            # Chunks that last for several writes, so that something is left to the next attempt.
            spec["chunkSize"] = dice.number(f"{name} chunk size with results", 3, 8)
        if dice.happens(f"{name} chunk size left out", 0.3):
            del spec["chunkSize"]
        if skipped := self._some(f"{name} skips", count, 0.4):
            items["skip"] = ",".join(map(str, skipped))
        self._add_waits(number, spec)
        if dice.happens(f"{name} may fail", 0.3):
            spec["maxFailed"] = dice.number(f"{name} may fail so many", 0, 3)
        if dice.happens(f"{name} kept", self.swarm.removed_early):
            spec["ttlSecondsAfterFinished"] = 20
        body = {
            "apiVersion": API_VERSION,
            "kind": "AsyncArray",
            "metadata": {"name": f"array-{number}"},
            "spec": spec,
        }
        self.cluster.write(PEOPLE, "POST", collection_path(NAMESPACE, ARRAYS), body)

    def _is_isolated(self, name: str) -> bool:
        return self.dice.happens(f"{name} isolated", self.swarm.isolated)

    def _add_waits(self, number: int, spec: Object) -> None:
        """Have an array wait for a time, another array, or a job."""
        dice, name = self.dice, f"array {number}"
        if dice.happens(f"{name} later", 0.2):
            pause = dice.between(f"{name} not before", 0.0, 40.0)
            spec["notBefore"] = time_text(self.cluster.loop.time() - FIRST_MOMENT + pause)
        depends = []
        if number and dice.happens(f"{name} after an array", _WAITING):
            depends.append({"array": f"array-{dice.number(f'{name} on array', 0, number - 1)}"})
        job = dice.number(f"{name} on job", 0, self.jobs - 1)
        if dice.happens(f"{name} after a job", _WAITING) and not self._is_rare(job):
            depends.append({"name": f"job-{job}"})
        for dependency in depends:
            dependency["outcome"] = dice.choice(f"{name} outcome", ("Succeeded", "Any", "Any"))
        if depends:
            spec["dependsOn"] = depends

    def _add_relations(self, number: int, options: Object) -> None:
        """Have some jobs wait for arrays."""
        super()._add_relations(number, options)
        dice, name = self.dice, f"job {number}"
        if dice.happens(f"{name} after an array", _WAITING):
            array = f"array-{dice.number(f'{name} on array', 0, 1)}"
            outcome = dice.choice(f"{name} outcome of the array", ("Succeeded", "Any", "Any"))
            others = options.get("dependsOn", [])
            options["dependsOn"] = [*others, {"array": array, "outcome": outcome}]

    def _some(self, name: str, count: int, chance: float) -> list[int]:
        """Return some items, of a few arrays only."""
        if not self.dice.happens(name, chance):
            return []
        share = self.dice.choice(f"{name} share", (0.1, 0.1, 0.5))
        return [item for item in range(count) if self.dice.happens(f"{name} {item}", share)]

    # ---- what people do with them

    def _arrays(self) -> list[Object]:
        return list(self.cluster.server.storage.collection((GROUP, ARRAYS)).objects.values())

    def _change_array(self, name: str) -> None:
        arrays = [one for one in self._arrays() if _phase(one) not in ENDED]
        if not arrays:
            return
        array = self.dice.choice(f"{name} which", arrays)
        kinds = ("suspend", "suspend", "cancel", "delete", "chunk", "chunk")
        match self.dice.choice(f"{name} kind", kinds):
            case "suspend":
                self._patch(_path(array), {"suspend": True})
                pause = self.dice.between(f"{name} pause", 1.0, 30.0)
                self._later(pause, self._patch, _path(array), {"suspend": False})
            case "cancel":
                self._patch(_path(array), {"cancel": True})
            case "delete":
                self.cluster.recorder.count("array deleted")
                self.cluster.write(PEOPLE, "DELETE", _path(array))
            case "chunk":
                self._delete_chunk(name, array["metadata"]["uid"])

    def _delete_chunk(self, name: str, uid: str) -> None:
        jobs = self.cluster.server.storage.collection((GROUP, JOBS)).objects.values()
        chunks = [one for one in jobs if _label(one) == uid]
        if chunks:
            chunk = self.dice.choice(f"{name} chunk", chunks)["metadata"]["name"]
            self.cluster.recorder.count("chunk deleted by a person")
            self.cluster.write(PEOPLE, "DELETE", job_path(NAMESPACE, chunk))

    def _redrive_some(self, name: str) -> None:
        """Mend what makes items of a failed array fail, mostly, and run them again."""
        failed = [one for one in self._arrays() if _phase(one) == "Failed"]
        if failed:
            array = self.dice.choice(f"{name} which", failed)
            if self.dice.happens(f"{name} mended", 0.7):
                self.runs.mended.add(array["metadata"]["uid"])
            self._patch(_path(array), {"redrive": array["spec"].get("redrive", 0) + 1})
        again: Callable[[str], None] = self._redrive_some
        if not self.is_over:
            self._later(_REDRIVE_SECONDS, again, f"{name}+")


def _path(array: Object) -> str:
    return path_of(NAMESPACE, array["metadata"]["name"])


def _phase(array: Object) -> str:
    return str((array.get("status") or {}).get("phase", ""))


def _label(job: Object) -> str:
    return str((job["metadata"].get("labels") or {}).get(ARRAY_LABEL, ""))
