"""Searches at random for planted bugs, and what each of them takes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from hypothesis import Phase, find, settings
from hypothesis.strategies import SearchStrategy

from asyncjob_simulation.mutations import by_name

Example = TypeVar("Example")


@dataclass(frozen=True)
class Found:
    """What a search took until it had found a bug: examples, and seconds of CPU; why it counts."""

    examples: int
    seconds: float
    why: str


@dataclass(frozen=True)
class BugSearch:
    """Searches whose examples follow from a seed alone, not from what was found before."""

    seed: str

    def finds(
        self,
        bug: str,
        examples: SearchStrategy[Example],
        judged: Callable[[Example], None],
        *,
        broken: str,
        at_most: int = 2000,
    ) -> Found:
        """Plant a bug and try examples until one fails with words of the promise; print the count.

        Raises NoSuchExample if none of so many fails, and AssertionError if one fails in another
        way, or if what has been found fails without the bug as well.
        """
        began, tried, found = time.process_time(), 0, list[Found]()

        def breaks(example: Example) -> bool:
            nonlocal tried
            tried += 1
            try:
                judged(example)
            except AssertionError as error:
                why = str(error).partition("\n")[0]
                if broken not in why:
                    raise
                found.append(Found(tried, time.process_time() - began, why))
                return True
            return False

        once = settings(max_examples=at_most, phases=[Phase.generate], database=None)
        with by_name(bug).plant():
            example = find(examples, breaks, settings=once, random=Random(self.seed))
        judged(example)
        first = found[0]  # what is found is tried once more, and counts as an example again
        print(  # noqa: T201  # for who wants to know; pytest shows it with -s
            f"\n{bug}, seed {self.seed}: {first.examples} examples, {first.seconds:.2f} s of CPU: "
            f"{first.why}"
        )
        return first
