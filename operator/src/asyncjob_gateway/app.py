"""The app: routes and layers around one context. Another area is one more router here."""

from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp

from asyncjob_gateway import dashboard, openapi
from asyncjob_gateway.auth.loopback import LoopbackOnly
from asyncjob_gateway.context import AppContext
from asyncjob_gateway.limits.load import Limited
from asyncjob_gateway.problems import handlers
from asyncjob_gateway.routes import (
    bulk,
    cron_jobs,
    events,
    health,
    jobs,
    public,
    queues,
    submissions,
    wishes,
    workers,
)
from asyncjob_gateway.telemetry.requests import Observed

ROUTERS = (
    public.router,
    submissions.router,
    submissions.batches,
    bulk.router,
    events.router,
    jobs.router,
    wishes.router,
    queues.router,
    cron_jobs.router,
    workers.router,
    health.router,
    dashboard.router,
)

UNSEEN: Final = TelemetryConfig(
    tracing=False, metrics=False, logs=False, operation_spans=False, auto_configure=False
)
"""The framework's own telemetry would show query strings and what errors say."""


def make_app() -> FastAPI:
    """Return the framework's app, without its context and the layers around it."""
    app = FastAPI(
        title=openapi.TITLE,
        version=openapi.VERSION,
        description=openapi.DESCRIPTION,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=UNSEEN,
    )
    handlers.install(app)
    for router in ROUTERS:
        app.include_router(router)
    openapi.install(app)
    return app


def serve_with(context: AppContext) -> ASGIApp:
    """Return the whole of it: from the access log inwards, limits, the app."""
    settings = context.settings
    routes = make_app()
    routes.state.context = context
    app: ASGIApp = routes
    if settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Location", "Retry-After", "X-Request-Id"],
        )
    app = Limited(app, most=settings.max_requests, seconds=settings.request_timeout)
    if settings.open:
        app = LoopbackOnly(app)
    return Observed(app, context.metrics)
