"""Numbers in Prometheus' text format, as API server, operator and workers show them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Sample = tuple[str, Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples of one moment, or of the time between two."""

    samples: tuple[Sample, ...]

    @classmethod
    def of(cls, text: str) -> "Scrape":
        """Read a scrape."""
        return cls(
            tuple(
                (sample.name, sample.labels, sample.value)
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            )
        )

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of all samples of a name that have these labels."""
        return sum(value for _, value in self.matching(name, labels))

    def matching(
        self, name: str, labels: Mapping[str, str]
    ) -> Iterator[tuple[Mapping[str, str], float]]:
        """Yield labels and value of the samples of a name that have these labels."""
        for sample, has, value in self.samples:
            if sample == name and labels.items() <= has.items():
                yield has, value
