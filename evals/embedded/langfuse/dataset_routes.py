"""``/v2/datasets``, ``/datasets`` and ``/dataset-items``."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import errors, jsonvalues, validation
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.datasets import DatasetChange, ItemChange, ItemFilter
from evals.embedded.langfuse.errors import Issue, JsonResponse
from evals.embedded.langfuse.jsonvalues import KEEP, Keep
from evals.embedded.langfuse.requests import Endpoint, authenticate, read_json, segment
from evals.embedded.langfuse.settings import StoreSettings
from evals.embedded.langfuse.validation import BodyReader, QueryReader

_MAX_ID_LENGTH = 255


class DatasetRoutes:
    """The endpoints of datasets and their items."""

    def __init__(self, store: DatasetStore, settings: StoreSettings) -> None:
        self._store = store
        self._settings = settings

    def routes(self) -> list[Route]:
        """The routes, to be put into the application."""
        return [
            Route(path, Endpoint(self._settings, methods))
            for path, methods in (
                ("/api/public/v2/datasets", {"GET": self.list_datasets, "POST": self.upsert_dataset}),
                ("/api/public/v2/datasets/{name}", {"GET": self.get_dataset}),
                ("/api/public/datasets", {"GET": self.list_datasets_v1, "POST": self.upsert_dataset}),
                ("/api/public/datasets/{name}", {"GET": self.get_dataset_v1}),
                ("/api/public/dataset-items", {"GET": self.list_items, "POST": self.upsert_item}),
                ("/api/public/dataset-items/{id}", {"GET": self.get_item, "DELETE": self.delete_item}),
            )
        ]

    async def upsert_dataset(self, request: Request) -> Response:
        """POST: create a dataset or change the one of that name."""
        body = await read_json(request)
        authenticate(request, self._settings)
        change = _dataset_change(validation.expect_object(body))
        return JsonResponse(self._store.upsert_dataset(change).answer(self._settings.project.id))

    async def list_datasets(self, request: Request) -> Response:
        """GET: datasets by page."""
        authenticate(request, self._settings)
        page, limit = _paging(request)
        found = self._store.list_datasets(page, limit)
        project = self._settings.project.id
        return JsonResponse({"data": [each.answer(project) for each in found.items], "meta": found.meta()})

    async def list_datasets_v1(self, request: Request) -> Response:
        """GET (v1): datasets by page, with the ids of their items."""
        authenticate(request, self._settings)
        page, limit = _paging(request)
        found = self._store.list_datasets(page, limit)
        data = [
            {
                **each.answer(self._settings.project.id),
                "items": [item.id for item in self._store.active_items(each)],
                "runs": [],
            }
            for each in found.items
        ]
        return JsonResponse({"data": data, "meta": found.meta()})

    async def get_dataset(self, request: Request) -> Response:
        """GET one dataset."""
        authenticate(request, self._settings)
        return JsonResponse(self._dataset(segment(request, "name")))

    async def get_dataset_v1(self, request: Request) -> Response:
        """GET (v1) one dataset with its active items; runs are no longer listed there."""
        authenticate(request, self._settings)
        name = segment(request, "name")
        answer = self._dataset(name)
        dataset = self._store.dataset(name)
        assert dataset is not None
        items = [item.answer() for item in self._store.active_items(dataset)]
        return JsonResponse({**answer, "items": items, "runs": []})

    async def upsert_item(self, request: Request) -> Response:
        """POST: a new version of an item."""
        body = await read_json(request)
        authenticate(request, self._settings)
        change = _item_change(validation.expect_object(body))
        return JsonResponse(self._store.upsert_item(change).answer())

    async def list_items(self, request: Request) -> Response:
        """GET: active items by page, of one dataset or of all."""
        authenticate(request, self._settings)
        query = QueryReader(request.query_params)
        name = query.text("datasetName")
        trace = query.text("sourceTraceId")
        observation = query.text("sourceObservationId")
        as_of = query.zoned("version")
        page, limit = _read_paging(query)
        if as_of is not None and name is None:
            query.issues.append(
                validation.custom("datasetName is required when version parameter is provided", ["datasetName"])
            )
        query.done()
        dataset = None if name is None else self._store.dataset(name)
        if name is not None and dataset is None:
            raise errors.not_found("Dataset not found")
        found = self._store.list_items(ItemFilter(dataset, trace, observation, as_of), page, limit)
        return JsonResponse({"data": [each.answer() for each in found.items], "meta": found.meta()})

    async def get_item(self, request: Request) -> Response:
        """GET one item, archived or not."""
        authenticate(request, self._settings)
        item = self._store.item(segment(request, "id"))
        if item is None:
            raise errors.not_found("Dataset item not found")
        return JsonResponse(item.answer())

    async def delete_item(self, request: Request) -> Response:
        """DELETE one item."""
        authenticate(request, self._settings)
        self._store.delete_item(segment(request, "id"))
        return JsonResponse({"message": "Dataset item successfully deleted"})

    def _dataset(self, name: str) -> dict[str, Any]:
        dataset = self._store.dataset(name)
        if dataset is None:
            raise errors.not_found("Dataset not found")
        return dataset.answer(self._settings.project.id)


def _paging(request: Request) -> tuple[int, int]:
    query = QueryReader(request.query_params)
    found = _read_paging(query)
    query.done()
    return found


def _read_paging(query: QueryReader) -> tuple[int, int]:
    page = query.integer("page", 1, minimum=1, above=True)
    limit = query.integer("limit", 50, minimum=1, maximum=100)
    return page, limit


def _dataset_change(body: dict[str, Any]) -> DatasetChange:
    reader = BodyReader(body)
    name = reader.text("name", required=True)
    description = reader.text("description")
    reader.done()
    assert name is not None
    issues = _name_issues(name)
    if issues:
        listed = jsonvalues.pretty(issues)
        raise errors.invalid_request(f"Dataset name not valid. {listed}")
    return DatasetChange(
        jsonvalues.clean_text(name),
        KEEP if description is None else jsonvalues.clean_text(description),
        KEEP if body.get("metadata") is None else jsonvalues.normalise(body["metadata"]),
        _schema(body, "inputSchema"),
        _schema(body, "expectedOutputSchema"),
    )


def _schema(body: dict[str, Any], field: str) -> Any | Keep:
    # Unlike every other field, an explicit null clears a schema.
    return body.get(field, KEEP)


def _name_issues(name: str) -> list[Issue]:
    issues: list[Issue] = []
    if name == "":
        issues.append(
            {
                "origin": "string",
                "code": "too_small",
                "minimum": 1,
                "inclusive": True,
                "path": [],
                "message": "Text cannot be empty",
            }
        )
    for wrong, pattern, message in (
        (name == "" or name.startswith("/"), "/^[^/]/", "Name cannot start with a slash"),
        (name == "" or name.endswith("/"), "/^.*[^/]$/", "Name cannot end with a slash"),
    ):
        if wrong:
            issues.append(
                {
                    "origin": "string",
                    "code": "invalid_format",
                    "format": "regex",
                    "pattern": pattern,
                    "path": [],
                    "message": message,
                }
            )
    return issues


def _item_change(body: dict[str, Any]) -> ItemChange:
    reader = BodyReader(body)
    name = reader.text("datasetName", required=True)
    item_id = reader.text("id")
    if item_id is not None and not 1 <= len(item_id) <= _MAX_ID_LENGTH:
        empty = item_id == ""
        reader.issues.append(
            {
                "origin": "string",
                "code": "too_small" if empty else "too_big",
                **({"minimum": 1} if empty else {"maximum": _MAX_ID_LENGTH}),
                "inclusive": True,
                "path": ["id"],
                "message": "ID must not be empty" if empty else f"ID must be at most {_MAX_ID_LENGTH} characters",
            }
        )
    trace = reader.text("sourceTraceId")
    observation = reader.text("sourceObservationId")
    status = reader.option("status", ["ACTIVE", "ARCHIVED"])
    reader.done()
    assert name is not None
    return ItemChange(
        name,
        item_id,
        jsonvalues.item_value(body, "input"),
        jsonvalues.item_value(body, "expectedOutput"),
        jsonvalues.item_value(body, "metadata"),
        "ARCHIVED" if status == "ARCHIVED" else "ACTIVE" if status == "ACTIVE" else None,
        trace,
        observation,
    )
