"""The app: routes and layers around one context. Another area is one more router here."""

from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp

from asyncjob_gateway import dashboard, openapi, problems
from asyncjob_gateway.auth.loopback import LoopbackOnlyMiddleware
from asyncjob_gateway.context import AppContext
from asyncjob_gateway.limits.load import LoadLimitMiddleware
from asyncjob_gateway.routes import (
    arrays,
    control,
    cron_jobs,
    events,
    health,
    jobs,
    public,
    queues,
    submissions,
)
from asyncjob_gateway.telemetry import AccessLogMiddleware

ROUTERS = (
    public.router,
    submissions.router,
    submissions.batch_router,
    jobs.dead_letters_router,
    events.router,
    jobs.router,
    control.router,
    queues.router,
    cron_jobs.router,
    arrays.router,
    queues.workers_router,
    health.router,
    dashboard.router,
)

NO_FRAMEWORK_TELEMETRY: Final = TelemetryConfig(
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
        telemetry=NO_FRAMEWORK_TELEMETRY,
    )
    problems.install_exception_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    openapi.install(app)
    return app


def make_asgi_app(context: AppContext) -> ASGIApp:
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
    app = LoadLimitMiddleware(
        app, max_requests=settings.max_requests, timeout=settings.request_timeout
    )
    if settings.open:
        app = LoopbackOnlyMiddleware(app)
    return AccessLogMiddleware(app, context.metrics)
