"""Jobs whose handlers submit children and wait for them, some with a deadline."""

from dataclasses import dataclass
from typing import Any, Final

from asyncjob_simulation.child_handlers import AWAITING
from asyncjob_simulation.workload import Workload

Object = dict[str, Any]

_SECONDS: Final = (0.0, 12.0)
"""How long a child takes."""

_LIMITS: Final = (None, None, None, 4.0, 20.0)
"""For how long children are waited for: longer than a handler keeps its slot for."""

_DEADLINES: Final = (20, 60, 300)


@dataclass
class ChildWorkload(Workload):
    """The parents; their children come by themselves."""

    def _options(self, number: int) -> Object:
        options, dice, name = super()._options(number), self.dice, f"job {number}"
        if dice.happens(f"{name} deadline", 0.25):
            options["deadlineSeconds"] = dice.choice(f"{name} deadline is", _DEADLINES)
        if options["type"] != "work" or not dice.happens(f"{name} awaiting", 0.7):
            return options
        groups = [
            self._group(f"{name} group {place}")
            for place in range(dice.number(f"{name} groups", 1, 3))
        ]
        failures = dice.choice(f"{name} awaiting failures", (0, 0, 0, 1, 2))
        options.update(type=AWAITING, payload={"groups": groups, "failures": failures})
        return options

    def _group(self, name: str) -> Object:
        dice = self.dice
        return {
            "children": [
                self._child(f"{name} child {place}")
                for place in range(dice.number(f"{name} children", 1, 4))
            ],
            "limit": dice.choice(f"{name} limit", _LIMITS),
            "each": dice.happens(f"{name} each", 0.3),
        }

    def _child(self, name: str) -> Object:
        dice = self.dice
        seconds = round(dice.between(f"{name} takes", *_SECONDS), 3)
        failures = dice.choice(f"{name} failures", (0, 0, 0, 1, 9))
        return {
            "payload": {"steps": 1, "pause": seconds, "failures": failures, "failsAt": 0},
            "retries": dice.choice(f"{name} retries", (0, 2)),
        }
