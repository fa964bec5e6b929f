"""The sign-in page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignInPage:
    """Where to go on, what was wrong, and whether the token would cross a network readable."""

    target: str
    error: str = ""
    in_the_clear: bool = False
