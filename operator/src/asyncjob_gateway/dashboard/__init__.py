"""The dashboard: pages for people, rendered here, read without scripts and live with them.

Same callers, same rights and same operations as REST. What a page shows is decided by pure
functions (`views`) from REST's models; `pages` ask for rights, fetch and answer; `templates` write
the HTML; `static` has one style sheet and a few small scripts, served as they are.
"""

from asyncjob_gateway.dashboard.router import router

__all__ = ["router"]
