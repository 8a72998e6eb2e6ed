"""Small pages behind the links that the Langfuse SDK prints: an experiment's trials, a trace's observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import errors, times
from evals.embedded.langfuse.experiments import ExperimentStore
from evals.embedded.langfuse.filters import Conditions
from evals.embedded.langfuse.observations import ObservationQuery, ObservationStore
from evals.embedded.langfuse.requests import credentials_problem, segment
from evals.embedded.langfuse.score_store import ScoreStore
from evals.embedded.langfuse.settings import DEFAULT_SECRET_KEY, StoreSettings

_SHOWN = 1000
_CUT = 400
_STYLE = (
    "body{font:14px/1.4 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}"
    "td{max-width:32rem;overflow-wrap:anywhere}"
)


class PageRoutes:
    """``/project/...``."""

    def __init__(
        self,
        experiments: ExperimentStore,
        observations: ObservationStore,
        score_store: ScoreStore,
        settings: StoreSettings,
    ) -> None:
        self._experiments = experiments
        self._observations = observations
        self._scores = score_store
        self._settings = settings

    def routes(self) -> list[Route]:
        """The routes, to be put into the application."""
        return [
            Route("/", self.overview),
            Route("/project/{project}", self.overview),
            Route("/project/{project}/traces/{trace}", self.trace),
            Route("/project/{project}/{rest:path}", self.overview),
        ]

    async def overview(self, request: Request) -> Response:
        """The experiments, or the trials of the one named as ``baseline``."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        experiment = request.query_params.get("baseline")
        return self._trials(experiment) if experiment else self._list()

    async def trace(self, request: Request) -> Response:
        """The observations of a trace, in the order they began."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        trace_id = segment(request, "trace")
        conditions = Conditions()
        conditions.add("trace_id = ?", trace_id)
        rows, _ = self._observations.page(ObservationQuery(conditions, _SHOWN, with_io=True))
        return _page(
            f"Trace {trace_id}",
            ("start", "type", "name", "level", "status", "input", "output"),
            (
                (
                    _text(times.iso(row["start_ms"])),
                    _text(row["type"]),
                    _text(row["name"]),
                    _text(row["level"]),
                    _text(row["status_message"]),
                    _text(row["input"]),
                    _text(row["output"]),
                )
                for row in reversed(rows)
            ),
        )

    def _list(self) -> Response:
        rows, _ = self._experiments.experiments(Conditions(), _SHOWN)
        root = f"/project/{quote(self._settings.project.id)}/experiments/results?baseline="
        return _page(
            "Experiments",
            ("last activity", "experiment", "trials"),
            (
                (
                    _text(times.iso(row["start_ms"])),
                    _link(root + quote(row["experiment_id"], safe=""), row["experiment_name"]),
                    _text(str(row["trials"])),
                )
                for row in rows
            ),
        )

    def _trials(self, experiment: str) -> Response:
        conditions = Conditions()
        conditions.add("experiment_id = ?", experiment)
        rows, _ = self._experiments.trials(conditions, _SHOWN)
        marks: dict[str, list[str]] = {}
        for score in self._scores.of_traces([row["trace_id"] for row in rows]):
            value = score["text"] if score["number"] is None else f"{score['number']:g}"
            marks.setdefault(score["trace_id"], []).append(f"{score['name']}={value}")
        name = rows[0]["experiment_name"] if rows else experiment
        root = f"/project/{quote(self._settings.project.id)}/traces/"
        return _page(
            f"Experiment {name}",
            ("start", "item", "level", "scores", "input", "output", "expected"),
            (
                (
                    _text(times.iso(row["start_ms"])),
                    _link(root + quote(row["trace_id"], safe=""), row["experiment_item_id"]),
                    _text(row["level"]),
                    _text(", ".join(sorted(marks.get(row["trace_id"], [])))),
                    _text(row["input"]),
                    _text(row["output"]),
                    _text(row["expected_output"]),
                )
                for row in reversed(rows)
            ),
        )

    def _refusal(self, request: Request) -> Response | None:
        # The well-known keys keep nothing out: the browser need not ask for them.
        if self._settings.secret_key == DEFAULT_SECRET_KEY:
            return None
        if credentials_problem(request, self._settings) is None:
            return None
        challenge = {"www-authenticate": 'Basic realm="public key and secret key of the store"'}
        return errors.HtmlResponse("<!DOCTYPE html><title>401</title><p>Not authorized</p>", 401, challenge)


def _text(value: str | None) -> str:
    text = value or ""
    return escape(text if len(text) <= _CUT else text[:_CUT] + "…")


def _link(target: str, text: str) -> str:
    return f'<a href="{escape(target)}">{_text(text)}</a>'


def _page(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    empty = "" if body else "<p>Nothing here yet.</p>"
    return errors.HtmlResponse(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<table><tr>{head}</tr>{body}</table>{empty}</body></html>"
    )
