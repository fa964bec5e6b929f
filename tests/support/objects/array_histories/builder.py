"""Histories of arrays as `audit record` writes them, made by hand: each method is one write."""

from typing import Any

from asyncjob.names import ARRAY_LABEL, ARRAYS
from support.objects.histories import NAMESPACE, HistoryBuilder, Line

CONDITIONS = {"Succeeded": "Complete", "Failed": "Failed", "Cancelled": "Cancelled"}


class ArrayBuilder:
    """One array in a history, and its chunks. What it writes is good unless a test breaks it."""

    def __init__(
        self, history: HistoryBuilder, name: str = "array", count: int = 10, **spec: Any
    ) -> None:
        self.history = history
        self.name = name
        self.uid = f"uid-array-{name}"
        self.count = count
        self.spec: dict[str, Any] = {"type": "thumb", "items": {"count": count}, **spec}
        self.status: dict[str, Any] = {"phase": "Pending"}
        self.open: dict[str, tuple[int, int]] = {}

    def create(self) -> "ArrayBuilder":
        """Create it."""
        self._write("ADDED")
        return self

    def write(self, *drop: str, **status: Any) -> Line:
        """Write fields of its status."""
        kept = {key: value for key, value in self.status.items() if key not in drop}
        self.status = {**kept, **status}
        return self._write("MODIFIED")

    def ask(self, **spec: Any) -> Line:
        """Write fields of its spec."""
        self.spec = {**self.spec, **spec}
        return self._write("MODIFIED")

    def cut(self, first: int, end: int, **status: Any) -> str:
        """Reserve a chunk, of items that were not cut yet unless it says otherwise."""
        generation = self.status.get("generation", 0) + 1
        chunk = f"{self.name}-{generation}"
        self.open[chunk] = (first, end)
        self.write(
            phase="Running",
            total=self.count,
            next=max(end, self.status.get("next", 0)),
            generation=generation,
            open=self.entries(),
            **status,
        )
        return chunk

    def entries(self) -> list[Line]:
        """Return the list of chunks under way as the status has it."""
        return [
            {"name": name, "items": notation(first, end), "generation": number}
            for number, (name, (first, end)) in enumerate(self.open.items(), 1)
        ]

    def start(self, chunk: str) -> str:
        """Create a chunk's job."""
        labels = {ARRAY_LABEL: self.uid}
        kind = f"{self.spec['type']}/{'store' if 'results' in self.spec else 'items'}"
        return self.history.create(chunk, labels=labels, type=kind)

    def run(self, chunk: str) -> None:
        """Create and run it to its end."""
        self.start(chunk)
        self.history.claim(chunk)
        self.history.succeed(chunk)

    def fold(self, chunk: str, failed: str = "", done: int | None = None, **status: Any) -> Line:
        """Take a chunk off the list, and count its items; as many as not said are done."""
        first, end = self.open.pop(chunk)
        lost = failed.count(",") + 1 if failed else 0
        succeeded = end - first - lost if done is None else done
        more = {"failed": lost, "failedItems": failed} if failed else {}
        return self.write(
            open=self.entries(),
            succeeded=self.status.get("succeeded", 0) + succeeded,
            **more,
            **status,
        )

    def end(self, phase: str = "Succeeded", **status: Any) -> Line:
        """End it."""
        condition = {"type": CONDITIONS[phase], "status": "True"}
        completed: Line = {"completionTime": self.history.now(), "conditions": [condition]}
        return self.write("open", phase=phase, **completed, **status)

    def redrive(self) -> Line:
        """Take it back to Running, with the failed items to be run again beside those that wait."""
        number = self.status.get("redrives", 0) + 1
        lost = self.status.get("failedItems", "")
        self.ask(redrive=number)
        return self.write(
            *("failedItems", "completionTime", "conditions"),
            phase="Running",
            reason="Redriven",
            failed=0,
            redrives=number,
            requeued=",".join(filter(None, (self.status.get("requeued"), lost))),
        )

    def delete(self) -> Line:
        """Delete it."""
        return self._write("DELETED")

    def chunk(self, first: int, end: int) -> str:
        """Cut a chunk, run it, count and delete it."""
        chunk = self.cut(first, end)
        self.run(chunk)
        self.fold(chunk)
        self.history.delete(chunk)
        return chunk

    def line(self, event: str) -> Line:
        """Return a version as it is now, which is not added to the history."""
        meta = {"name": self.name, "namespace": NAMESPACE, "uid": self.uid}
        obj = {
            "metadata": {**meta, "resourceVersion": self.history.next_version()},
            "spec": self.spec,
            "status": self.status,
        }
        written = self.history.now(milliseconds=False)
        return {"resource": ARRAYS, "event": event, "written": written, "object": obj}

    def _write(self, event: str) -> Line:
        return self.history.add("version", **self.line(event))


def notation(first: int, end: int) -> str:
    """Return the items from the first to before the end as ranges are written."""
    return str(first) if end == first + 1 else f"{first}-{end - 1}"


def relist_arrays(history: HistoryBuilder, *arrays: ArrayBuilder) -> None:
    """List the arrays again, as after a gap."""
    history.add("list", resource=ARRAYS, gap=True)
    for array in arrays:
        history.add("version", **array.line("LISTED"))
    history.add("listEnd", resource=ARRAYS, resourceVersion=history.next_version())
