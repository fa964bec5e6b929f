"""`asyncjob-operator` that tells people of things within seconds instead of minutes."""

from typing import Any

from asyncjob_operator import loops
from asyncjob_operator.cli import main
from asyncjob_operator.controllers import events

HASTE: dict[Any, dict[str, float]] = {
    events: {"UNSERVED_SECONDS": 1.0, "SUMMARY_SECONDS": 3.0},
    loops: {"UNSERVED_QUEUE_INTERVAL": 0.3},
}

if __name__ == "__main__":
    for module, settings in HASTE.items():
        for name, seconds in settings.items():
            setattr(module, name, seconds)
    main()
