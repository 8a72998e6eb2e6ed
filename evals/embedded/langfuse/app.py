"""The application: every route of the store."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import errors
from evals.embedded.langfuse.database import Database
from evals.embedded.langfuse.dataset_routes import DatasetRoutes
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.errors import JsonResponse
from evals.embedded.langfuse.experiments import ExperimentRoutes, ExperimentStore
from evals.embedded.langfuse.observations import ObservationRoutes, ObservationStore
from evals.embedded.langfuse.pages import PageRoutes
from evals.embedded.langfuse.requests import RawPath, authenticate
from evals.embedded.langfuse.score_routes import ScoreRoutes
from evals.embedded.langfuse.score_store import ScoreStore
from evals.embedded.langfuse.settings import LANGFUSE_VERSION, StoreSettings
from evals.embedded.langfuse.shipping import load_shipped

_ALL_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

# Endpoints of earlier versions: 404 with a word about it, whatever the method and whoever asks.
_UNAVAILABLE = (
    "/api/public/traces",
    "/api/public/traces/{id}",
    "/api/public/observations",
    "/api/public/observations/{id}",
    "/api/public/spans",
    "/api/public/generations",
    "/api/public/events",
    "/api/public/v2/scores",
    "/api/public/v2/scores/{id}",
    "/api/public/sessions",
    "/api/public/sessions/{id}",
    "/api/public/metrics",
    "/api/public/metrics/daily",
    "/api/public/datasets/{name}/runs",
    "/api/public/datasets/{name}/runs/{run}",
)


def create_app(
    database: Database,
    settings: StoreSettings | None = None,
    shipped_datasets: Path | None = None,
    *,
    refresh_shipped: bool = True,
) -> Starlette:
    """The store as an ASGI application over an open database.

    `shipped_datasets`: a folder of dataset files; the store is brought up to date with them now, except for
    what its user has changed (`load_shipped`), or without `refresh_shipped` only where it has no such dataset.
    Raises TwogateError when one of them is not valid.
    """
    chosen = settings or StoreSettings()
    datasets = DatasetStore(database, chosen)
    observations = ObservationStore(database)
    experiments = ExperimentStore(database)
    score_store = ScoreStore(database, chosen)
    if shipped_datasets is not None:
        load_shipped(database, datasets, shipped_datasets, refresh=refresh_shipped)

    async def health(_request: Request) -> Response:
        return JsonResponse({"status": "OK", "version": LANGFUSE_VERSION})

    async def projects(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return JsonResponse({"message": "Method not allowed"}, 405)
        try:
            authenticate(request, chosen)
        except errors.ApiError as error:
            return error.response
        project = chosen.project
        organization = {"id": project.organization_id, "name": project.organization_name}
        return JsonResponse(
            {"data": [{"id": project.id, "name": project.name, "organization": organization, "metadata": {}}]}
        )

    async def gone(_request: Request) -> Response:
        return errors.unavailable().response

    async def unknown(_request: Request, _error: Exception) -> Response:
        return errors.unknown_route()

    app = Starlette(
        routes=[
            Route("/api/public/health", health),
            Route("/api/public/projects", projects, methods=_ALL_METHODS),
            *DatasetRoutes(datasets, chosen).routes(),
            *ObservationRoutes(observations, chosen).routes(),
            *ScoreRoutes(score_store, chosen).routes(),
            *ExperimentRoutes(experiments, score_store, datasets, chosen).routes(),
            *(Route(path, gone, methods=_ALL_METHODS) for path in _UNAVAILABLE),
            *PageRoutes(experiments, observations, score_store, chosen).routes(),
        ],
        middleware=[Middleware(RawPath)],
        exception_handlers={404: unknown},
    )
    app.router.redirect_slashes = False
    return app
