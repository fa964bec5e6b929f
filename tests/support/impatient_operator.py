"""`asyncjob-operator` that misses a sign of its watches after seconds instead of minutes."""

from asyncjob_operator.cli import main
from asyncjob_operator.handlers import settings

if __name__ == "__main__":
    settings.BOOKMARK_SECONDS = 2.0  # type: ignore[misc]  # Final but for this
    main()
