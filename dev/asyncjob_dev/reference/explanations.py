"""The pages of `docs/reference/errors`, and the tables elsewhere that the catalogue fills.

A page for each file of the catalogue, and an index of all codes.
"""

import os
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from asyncjob.explanations.catalog import catalog
from asyncjob.explanations.texts import ErrorPage, Explanation, Kind, by_code, pages
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS
from asyncjob.schema.manifests import GeneratedFolder
from asyncjob_dev.reference.blocks import table

DOCS: Final = Path("docs")
ERRORS: Final = DOCS / "reference/errors"
HOW_TO: Final = DOCS / "how-to"

_HEAD: Final = (
    "<!-- Generated from sdk/src/asyncjob/explanations; change the files there instead. -->\n"
)
_LINK: Final = re.compile(r"\]\((?!\w+://|#)([^)#]+)")

_INDEX: Final = """\
# Errors and reasons

Every rule, reason, problem type, exit code, error and finding of the doctor has a code that never
changes its meaning. Messages carry it: `… (history.grows)`, `… (asyncjob explain no-cluster)`,
`"type": "/problems/no-job"`. The pages say of each what it means, why it exists and what to do,
with an example.

The command line has the same texts, and needs no cluster for them:

```console
asyncjob explain                        # all codes
asyncjob explain history.grows
asyncjob explain CrashBudgetExhausted
asyncjob explain /problems/no-job       # as the message has it
asyncjob explain 4                      # an exit code
```

Alerts have [runbooks](../../runbooks/README.md).
"""


def in_page(text: str, folder: Path) -> str:
    """Return Markdown of the catalogue with its links relative to a page's folder."""
    return _LINK.sub(lambda found: f"]({os.path.relpath(DOCS / found[1], folder)}", text)


def link_to(entry: Explanation, folder: Path) -> str:
    """Return a link to an entry, for a page in this folder."""
    return f"[`{entry.code}`]({os.path.relpath(entry.address, folder)})"


def errors_folder() -> GeneratedFolder:
    """Return the index and all pages."""
    texts = {f"{page.name}.md": _page_text(page) for page in pages()}
    return GeneratedFolder({"README.md": _index_text(), **texts}, pattern="*.md")


def _index_text() -> str:
    parts = [_HEAD + _INDEX]
    named = {page.name: page for page in pages()}
    for name, entries in groupby(catalog(), key=lambda one: one.page):
        rows = [(link_to(one, ERRORS), in_page(one.means, ERRORS)) for one in entries]
        heading = f"## [{named[name].title}]({name}.md)"
        parts.append(f"{heading}\n\n{table(('Code', 'Means'), rows)}\n")
    return "\n".join(parts)


def _page_text(page: ErrorPage) -> str:
    entries = [one for one in catalog() if one.page == page.name]
    head = f"{_HEAD}# {page.title}\n\n{in_page(page.intro, ERRORS)}\n"
    return "\n".join([head, *map(_section, entries)])


def _section(entry: Explanation) -> str:
    """Return the part of a page; the anchor is the code itself, whatever makes HTML of it."""
    title = f": {entry.title}" if entry.title else ""
    status = f" The status is {entry.status}." if entry.status else ""
    parts = [
        f'<a id="{entry.code}"></a>\n\n## {entry.code}{title}',
        in_page(entry.means, ERRORS) + status,
        f"**Why.** {in_page(entry.why, ERRORS)}",
        f"**What to do.** {in_page(entry.do, ERRORS)}",
        f"```text\n{entry.example}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def ways_out(*phases: Phase) -> str:
    """Return the table of a phase's reasons, each with what to do; for the troubleshooting page."""
    carried = {
        reason.value for one in TRANSITIONS if one.target in phases for reason in one.reasons
    }
    found = [one for code, one in by_code(Kind.JOB_REASON).items() if code in carried]
    return _ways_out(found)


def ways_out_of_cron_jobs() -> str:
    """Return the table of what keeps a cron job from creating jobs, each with what to do."""
    found = by_code(Kind.CRON_REASON).values()
    return _ways_out([one for one in found if not one.do.startswith("Nothing")])


def _ways_out(found: Sequence[Explanation]) -> str:
    rows = [(f"`{one.code}`", in_page(one.do, HOW_TO)) for one in found]
    return table(("Reason", "Way out"), rows)
