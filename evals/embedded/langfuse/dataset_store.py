"""Datasets and their items in the database, every version of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evals.embedded.langfuse import errors, jsonvalues, schemas
from evals.embedded.langfuse.database import Database, Row
from evals.embedded.langfuse.datasets import Dataset, DatasetChange, Item, ItemChange, ItemFilter, Page
from evals.embedded.langfuse.jsonvalues import KEEP, merged
from evals.embedded.langfuse.settings import StoreSettings

_VERSION_COLUMNS = (
    "v.item_id, v.dataset_id, v.status, v.input, v.expected_output, v.metadata, v.source_trace_id,"
    " v.source_observation_id, v.created_at, d.name AS dataset_name"
)


class DatasetStore:
    """Reads and writes datasets. Every method is one transaction."""

    def __init__(self, database: Database, settings: StoreSettings) -> None:
        self._database = database
        self._settings = settings

    def upsert_dataset(self, change: DatasetChange) -> Dataset:
        """Create the dataset or change the one of that name. Raises ApiError for a schema that is none."""
        for value, label in (
            (change.input_schema, "inputSchema"),
            (change.expected_output_schema, "expectedOutputSchema"),
        ):
            problem = None if value is KEEP or value is None else schemas.schema_problem(value)
            if problem:
                raise errors.invalid_request(f"{label} is not a valid JSON schema: {problem}")
        with self._database.write():
            now = self._settings.now()
            stored = self.dataset(change.name)
            if stored is None:
                stored = Dataset(self._settings.new_id("dataset"), change.name, None, None, None, None, now, now)
            after = replace(
                stored,
                description=merged(change.description, stored.description),
                metadata=merged(change.metadata, stored.metadata),
                input_schema=merged(change.input_schema, stored.input_schema),
                expected_output_schema=merged(change.expected_output_schema, stored.expected_output_schema),
                updated_at=now,
            )
            self._database.execute(
                "INSERT INTO datasets (id, name, description, metadata, input_schema, expected_output_schema,"
                " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                " description = excluded.description, metadata = excluded.metadata,"
                " input_schema = excluded.input_schema,"
                " expected_output_schema = excluded.expected_output_schema, updated_at = excluded.updated_at",
                (
                    after.id,
                    after.name,
                    after.description,
                    _packed(after.metadata),
                    _packed(after.input_schema),
                    _packed(after.expected_output_schema),
                    after.created_at,
                    after.updated_at,
                ),
            )
        return after

    def dataset(self, name: str) -> Dataset | None:
        """The dataset of that name."""
        row = self._database.row("SELECT * FROM datasets WHERE name = ?", (name,))
        return None if row is None else _dataset(row)

    def list_datasets(self, page: int, limit: int) -> Page[Dataset]:
        """Datasets, newest first."""
        with self._database.snapshot() as database:
            total = database.count("SELECT count(*) FROM datasets")
            rows = database.rows(
                "SELECT * FROM datasets ORDER BY created_at DESC, seq DESC LIMIT ? OFFSET ?",
                (limit, (page - 1) * limit),
            )
        return Page([_dataset(row) for row in rows], page, limit, total)

    def upsert_item(self, change: ItemChange) -> Item:
        """Write a new version of an item. Raises ApiError: 404 no such dataset, 409 the id is another
        dataset's, 400 no input or a broken schema.
        """
        with self._database.write():
            dataset = self.dataset(change.dataset_name)
            if dataset is None:
                raise errors.not_found(
                    f"Dataset {change.dataset_name} not found for project {self._settings.project.id}"
                )
            stored = None if change.id is None else self._stored(change.id, dataset)
            if stored is None and (change.input is KEEP or change.input is None):
                raise errors.invalid_request("Dataset item validation failed: Dataset item input cannot be null")
            item_id = change.id or self._settings.new_id("item")
            item = _after(change, dataset, item_id, stored, self._settings.now())
            _hold_to_schemas(item, dataset)
            self._write_version(item, deleted=False)
        return item

    def item(self, item_id: str) -> Item | None:
        """The newest version of an item, archived or not; None when there is none or it was deleted."""
        row = self._database.row(
            f"SELECT {_VERSION_COLUMNS} FROM items i JOIN item_versions v USING (seq)"  # noqa: S608
            " JOIN datasets d ON d.id = v.dataset_id WHERE i.id = ? AND v.deleted = 0",
            (item_id,),
        )
        return None if row is None else _item(row)

    def owner_id(self, item_id: str) -> str | None:
        """The id of the dataset that an item id belongs to, also when the item was deleted."""
        row = self._database.row("SELECT dataset_id FROM items WHERE id = ?", (item_id,))
        return None if row is None else row["dataset_id"]

    def delete_item(self, item_id: str) -> None:
        """Delete an item; its id stays with its dataset. Raises ApiError (404)."""
        with self._database.write():
            item = self.item(item_id)
            if item is None:
                raise errors.not_found(
                    f"Dataset item with id {item_id} not found for project {self._settings.project.id}"
                )
            self._write_version(replace(item, created_at=self._settings.now()), deleted=True)

    def list_items(self, wanted: ItemFilter, page: int, limit: int) -> Page[Item]:
        """Items that are active, newest version first."""
        if wanted.as_of is None:
            source = "items i JOIN item_versions v USING (seq)"
            parameters: list[Any] = []
        else:
            source = (
                "(SELECT item_id, max(seq) AS seq FROM item_versions WHERE created_at <= ?"
                " GROUP BY dataset_id, item_id) i JOIN item_versions v USING (seq)"
            )
            parameters = [wanted.as_of]
        where = ["v.deleted = 0", "v.status = 'ACTIVE'"]
        for column, value in (
            ("v.dataset_id", wanted.dataset.id if wanted.dataset else None),
            ("v.source_trace_id", wanted.source_trace_id),
            ("v.source_observation_id", wanted.source_observation_id),
        ):
            if value is not None:
                where.append(f"{column} = ?")
                parameters.append(value)
        condition = " AND ".join(where)
        with self._database.snapshot() as database:
            total = database.count(f"SELECT count(*) FROM {source} WHERE {condition}", parameters)  # noqa: S608
            rows = database.rows(
                f"SELECT {_VERSION_COLUMNS} FROM {source} JOIN datasets d ON d.id = v.dataset_id"  # noqa: S608
                f" WHERE {condition} ORDER BY v.created_at DESC, v.seq DESC LIMIT ? OFFSET ?",
                [*parameters, limit, (page - 1) * limit],
            )
        return Page([_item(row) for row in rows], page, limit, total)

    def active_items(self, dataset: Dataset) -> list[Item]:
        """All active items of a dataset, newest first."""
        return list(self.list_items(ItemFilter(dataset), 1, 2**53).items)

    def _stored(self, item_id: str, dataset: Dataset) -> Item | None:
        """The item as it is. Raises ApiError (409) when the id belongs to another dataset."""
        other = self.owner_id(item_id)
        if other is not None and other != dataset.id:
            raise errors.conflict(
                f"Dataset item id {item_id} already exists in another dataset (id {other}) in this project; item "
                f"ids are unique per project across datasets. Use a different id or target dataset {other}."
            )
        return self.item(item_id)

    def _write_version(self, item: Item, *, deleted: bool) -> None:
        seq = self._database.execute(
            "INSERT INTO item_versions (item_id, dataset_id, status, input, expected_output, metadata,"
            " source_trace_id, source_observation_id, created_at, deleted)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                item.id,
                item.dataset_id,
                item.status,
                _packed(item.input),
                _packed(item.expected_output),
                _packed(item.metadata),
                item.source_trace_id,
                item.source_observation_id,
                item.created_at,
                int(deleted),
            ),
        )
        self._database.execute(
            "INSERT INTO items (id, dataset_id, seq) VALUES (?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET seq = excluded.seq",
            (item.id, item.dataset_id, seq),
        )


def _after(change: ItemChange, dataset: Dataset, item_id: str, stored: Item | None, now: int) -> Item:
    base = stored or Item(item_id, dataset.id, dataset.name, "ACTIVE", None, None, None, None, None, now)
    return replace(
        base,
        status=change.status or base.status,
        input=merged(change.input, base.input),
        expected_output=merged(change.expected_output, base.expected_output),
        metadata=merged(change.metadata, base.metadata),
        source_trace_id=change.source_trace_id or base.source_trace_id,
        source_observation_id=change.source_observation_id or base.source_observation_id,
        created_at=now,
    )


def _hold_to_schemas(item: Item, dataset: Dataset) -> None:
    found = []
    for label, value, schema in (
        ("Input", item.input, dataset.input_schema),
        ("Expected output", item.expected_output, dataset.expected_output_schema),
    ):
        # An item need not have an expected output.
        if schema is None or (value is None and label == "Expected output"):
            continue
        problem = schemas.value_problem(value, schema)
        if problem:
            found.append(f"{label} validation failed: {problem}")
    if found:
        raise errors.invalid_request(f"Dataset item validation failed: {', '.join(found)}")


def _packed(value: Any) -> str | None:
    return None if value is None else jsonvalues.dumps(value)


def _unpacked(text: str | None) -> Any:
    return None if text is None else jsonvalues.loads(text)


def _dataset(row: Row) -> Dataset:
    return Dataset(
        row["id"],
        row["name"],
        row["description"],
        _unpacked(row["metadata"]),
        _unpacked(row["input_schema"]),
        _unpacked(row["expected_output_schema"]),
        row["created_at"],
        row["updated_at"],
    )


def _item(row: Row) -> Item:
    return Item(
        row["item_id"],
        row["dataset_id"],
        row["dataset_name"],
        row["status"],
        _unpacked(row["input"]),
        _unpacked(row["expected_output"]),
        _unpacked(row["metadata"]),
        row["source_trace_id"],
        row["source_observation_id"],
        row["created_at"],
    )
