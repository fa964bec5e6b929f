"""What a worker's health port says, as the kubelet and Prometheus would ask."""

import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from asyncjob_dev.ports import free_port

PATIENCE = 5.0


@dataclass(frozen=True)
class Scrape:
    """One look at the metrics: (name, labels, value) of each sample."""

    samples: Sequence[tuple[str, Mapping[str, str], float]]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        return sum(
            value
            for found, has, value in self.samples
            if found == name and labels.items() <= has.items()
        )


class Probes:
    """Asks one worker process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.option = f"--health-port={port}"

    @classmethod
    def on_free_port(cls) -> Self:
        """Return probes of a worker that is yet to be started, with `option`."""
        return cls(free_port())

    def ask(self, path: str) -> tuple[int, str]:
        """Return the HTTP code and the body; code 0 if nobody answers."""
        url = f"http://127.0.0.1:{self._port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metrics(self) -> Scrape:
        """Return the metrics."""
        code, body = self.ask("/metrics")
        assert code == 200, body
        return Scrape(
            [
                (sample.name, sample.labels, sample.value)
                for family in text_string_to_metric_families(body)
                for sample in family.samples
            ]
        )
