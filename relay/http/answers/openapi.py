"""The description of /api/v1/, as OpenAPI 3.1. docs/openapi.json is generated from this.

python -m relay.http.answers.openapi > docs/openapi.json
"""

import json
from typing import Any, Final

from relay.http.answers.json_answers import MOST_ON_A_PAGE, USUAL_ON_A_PAGE
from relay.http.facts.history import COLUMNS

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer"}
_NUMBER: Final[Schema] = {"type": "number"}
_TRUTH: Final[Schema] = {"type": "boolean"}
_TEXT_OR_NONE: Final[Schema] = {"type": ["string", "null"]}
_WHOLE_OR_NONE: Final[Schema] = {"type": ["integer", "null"]}
_NUMBER_OR_NONE: Final[Schema] = {"type": ["number", "null"]}


def _object(**keys: Schema) -> Schema:
    """Return a schema in which all keys are always present, and no others."""
    return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_none(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


def _by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(items: Schema, **more: Schema) -> Schema:
    return _object(**more, items=_list(items), total=_WHOLE, offset=_WHOLE, limit=_WHOLE, next_offset=_WHOLE_OR_NONE)


def _schemas() -> dict[str, Schema]:
    place = _or_none(_object(file=_TEXT, offset=_WHOLE))
    generation = _object(
        number=_WHOLE, state=_TEXT, files=_WHOLE, bytes=_WHOLE, oldest_file=_TEXT, newest_file=_TEXT,
        first_timestamp=_WHOLE, last_timestamp=_WHOLE, damaged_files=_WHOLE, failure=_TEXT,
    )  # fmt: skip
    applied = _object(
        replica=_TEXT, server_id=_WHOLE_OR_NONE, asked_at=_NUMBER_OR_NONE, known=_TRUTH, text=_TEXT, behind_bytes=_WHOLE_OR_NONE,
        behind_transactions=_WHOLE_OR_NONE, behind_s=_NUMBER_OR_NONE, applies={"type": ["boolean", "null"]},
        receives={"enum": ["Yes", "Connecting", "No", None]}, file=_TEXT_OR_NONE, offset=_WHOLE_OR_NONE,
        seconds_behind_source=_WHOLE_OR_NONE, delay_s=_WHOLE_OR_NONE, channel=_TEXT_OR_NONE, error=_TEXT_OR_NONE,
    )  # fmt: skip
    replica = _object(
        server_id=_WHOLE, account=_TEXT, host=_TEXT, view=_TEXT,
        state={"enum": ["streaming", "at_end", "waiting", "registered", "gone"]},
        file=_TEXT, offset=_WHOLE, generation=_WHOLE_OR_NONE, behind_bytes=_WHOLE_OR_NONE, behind_s=_NUMBER_OR_NONE,
        sent_bytes=_WHOLE, connection_id=_WHOLE, uuid=_TEXT, connected_s=_NUMBER, acknowledged_file=_TEXT,
        acknowledged_offset=_WHOLE, last_seen=_NUMBER, applied=_or_none(applied), applied_text=_TEXT,
    )  # fmt: skip
    view = _object(
        name=_TEXT, target=_TEXT, gtids=_TEXT, is_open=_TRUTH, behind_bytes=_WHOLE, stop=_TEXT, stop_text=_TEXT,
        source_file=_TEXT, source_offset=_WHOLE, files=_WHOLE, bytes=_WHOLE,
    )  # fmt: skip
    gap = _object(generation=_WHOLE, after=_TEXT_OR_NONE, before=_TEXT_OR_NONE, text=_TEXT)
    piece = _object(
        generation=_WHOLE, first_file=_TEXT, last_file=_TEXT, files=_WHOLE, bytes=_WHOLE, first_event_at=_WHOLE_OR_NONE,
        last_event_at=_WHOLE_OR_NONE, damaged=_WHOLE, cut=_WHOLE, is_open=_TRUTH,
    )  # fmt: skip
    file = _object(
        generation=_WHOLE, file=_TEXT, bytes=_WHOLE, state={"enum": ["open", "complete", "cut", "damaged"]},
        first_event_at=_WHOLE_OR_NONE, last_event_at=_WHOLE_OR_NONE, events=_WHOLE, transactions=_WHOLE, server_id=_WHOLE,
        server_version=_TEXT, digest=_TEXT_OR_NONE,
    )  # fmt: skip
    row = _object(at=_NUMBER, generation=_WHOLE, kind=_TEXT, file=_TEXT, offset=_WHOLE_OR_NONE, text=_TEXT, see=_TEXT)
    removed = _object(archive=_TEXT_OR_NONE, limit=_TEXT, files=_WHOLE, bytes=_WHOLE)
    held_back = _object(
        archive=_TEXT_OR_NONE, limit=_TEXT, kept_by=_TEXT, who=_TEXT, file=_TEXT, files=_WHOLE, bytes=_WHOLE,
        missing_bytes=_WHOLE, advice=_TEXT,
    )  # fmt: skip
    error = _object(number=_WHOLE, text=_TEXT, at=_NUMBER_OR_NONE)
    source = _object(
        kind=_TEXT, host=_TEXT, port=_WHOLE, flavour=_TEXT_OR_NONE, version=_TEXT_OR_NONE, server_id=_WHOLE_OR_NONE,
        server_uuid=_TEXT_OR_NONE, running={"enum": ["Yes", "Connecting", "No"]}, state=_TEXT, attached_at=_NUMBER_OR_NONE,
        stopped_by_operator=_TRUTH, trouble=_TEXT, error=_or_none(error), retries=_WHOLE, behind_s=_WHOLE_OR_NONE,
        behind_bytes=_WHOLE, received=place, archived=place, synced=place, last_event_at=_WHOLE_OR_NONE,
        last_received_at=_NUMBER_OR_NONE, last_heartbeat_at=_NUMBER_OR_NONE, heartbeat_period_s=_NUMBER, tls=_TEXT_OR_NONE,
        semi_sync=_TRUTH, received_bytes=_WHOLE, received_transactions=_WHOLE,
    )  # fmt: skip
    return {
        "Error": _object(
            error=_object(code=_TEXT, text=_TEXT, file=_TEXT_OR_NONE, offset=_WHOLE_OR_NONE, advice=_TEXT_OR_NONE)
        ),
        "Source": source,
        "Archive": _object(
            state=_TEXT,
            failure=_TEXT_OR_NONE,
            files=_WHOLE,
            bytes=_WHOLE,
            purged_bytes=_WHOLE,
            queued_bytes=_WHOLE,
            damaged_files=_WHOLE,
            generations=_list(generation),
        ),
        "Disk": _object(
            asked_at=_NUMBER_OR_NONE,
            free_bytes=_WHOLE_OR_NONE,
            size_bytes=_WHOLE_OR_NONE,
            growth_bytes_per_s=_NUMBER,
            growth_over_s=_NUMBER,
            full_in_s=_NUMBER_OR_NONE,
        ),
        "Files": _page(file),
        "Map": _object(files=_WHOLE, files_per_piece=_WHOLE, pieces=_list(piece), gaps=_list(gap)),
        "Replicas": _page(replica, states=_by_name(_WHOLE), applied_elsewhere=_list(applied)),
        "Views": _object(items=_list(view)),
        "Ledger": _object(items=_list(row), offset=_WHOLE, limit=_WHOLE, next_offset=_WHOLE_OR_NONE),
        "Scrub": _object(
            state=_TEXT, due=_WHOLE, checked_bytes=_WHOLE, total_bytes=_WHOLE, oldest=_NUMBER_OR_NONE, last=_TEXT
        ),
        "Retention": _object(
            is_on=_TRUTH,
            limits=_by_name(_TEXT_OR_NONE),
            last_pass_at=_NUMBER_OR_NONE,
            removed=_list(removed),
            held_back=_list(held_back),
            missing_bytes=_WHOLE,
            failures=_WHOLE,
            failure=_TEXT_OR_NONE,
            known_replicas=_WHOLE,
            away_replicas=_WHOLE,
            forgotten_replicas=_WHOLE,
            left_behind=_WHOLE,
            clock_ahead_s=_NUMBER,
        ),
        "Tiers": _object(
            state=_TEXT,
            last_pass_at=_NUMBER_OR_NONE,
            tiers=_list(_object(tier=_TEXT, files=_WHOLE, bytes=_WHOLE, stored_bytes=_WHOLE)),
            moved=_list(_object(tier=_TEXT, files=_WHOLE, bytes=_WHOLE)),
            waiting_files=_WHOLE,
            purged_files_in_bucket=_WHOLE,
            failures=_WHOLE,
            failure=_TEXT_OR_NONE,
            bucket_failing_since=_NUMBER_OR_NONE,
            read_cache=_or_none(
                _object(
                    limit_bytes=_WHOLE,
                    used_bytes=_WHOLE,
                    hits=_WHOLE,
                    shared=_WHOLE,
                    misses=_WHOLE,
                    evictions=_WHOLE,
                    in_progress=_WHOLE,
                    waiting=_WHOLE,
                    fetched=_list(_object(source=_TEXT, fetches=_WHOLE, bytes=_WHOLE)),
                    errors=_list(_object(kind=_TEXT, count=_WHOLE)),
                    bucket_away_since=_NUMBER_OR_NONE,
                )
            ),
        ),
        "Mirror": _object(
            url=_TEXT,
            state=_TEXT,
            lag_bytes=_WHOLE,
            lag_s=_NUMBER,
            files=_WHOLE,
            parts=_WHOLE,
            failures=_WHOLE,
            bytes_written=_WHOLE,
            left_out_files=_WHOLE,
            lost_files=_WHOLE,
            manifest=_WHOLE,
            trouble=_TEXT_OR_NONE,
        ),
        "History": _object(
            resolution={"enum": ["fine", "coarse"]},
            step_s=_WHOLE,
            at=_list(_NUMBER),
            columns=_object(**{name: _list(_NUMBER_OR_NONE) for name in COLUMNS}),
        ),
        "Position": _object(
            generation=_WHOLE_OR_NONE,
            file=_TEXT,
            offset=_WHOLE,
            verdict={
                "enum": [
                    "boundary",
                    "inside transaction",
                    "inside event",
                    "before start",
                    "past end",
                    "unknown file",
                    "future",
                ]
            },
            before=_WHOLE_OR_NONE,
            after=_WHOLE_OR_NONE,
            transaction=_or_none(_object(start=_WHOLE, end=_WHOLE_OR_NONE)),
            text=_TEXT,
        ),
        "Overview": _object(
            at=_NUMBER,
            version=_TEXT,
            started_at=_NUMBER,
            ready=_TRUTH,
            reasons=_list(_object(name=_TEXT, text=_TEXT)),
            source=_ref("Source"),
            archive=_ref("Archive"),
            disk=_ref("Disk"),
            views=_list(view),
            replicas=_ref("Replicas"),
            ledger=_or_none(_by_name(_WHOLE)),
            scrub=_ref("Scrub"),
            memory=_object(limit_bytes=_WHOLE, used_bytes=_WHOLE, most_used_bytes=_WHOLE, holders=_WHOLE, ended=_WHOLE),
        ),
    }


_PAGED: Final = ("offset", "limit")
_PARAMETERS: Final[dict[str, Schema]] = {
    "offset": {"type": "integer", "minimum": 0, "default": 0},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ON_A_PAGE, "default": USUAL_ON_A_PAGE},
    "resolution": {"enum": ["fine", "coarse"], "default": "coarse"},
    "file": {"type": "string", "maxLength": 512},
    "generation": {"type": "integer", "minimum": 1},
}
PATHS: Final = {
    "overview": ("Overview", "All that fits on one screen.", ()),
    "source": ("Source", "The way to the source.", ()),
    "archive": ("Archive", "The archive, by generation.", ()),
    "disk": ("Disk", "Free space, and until when it suffices.", ()),
    "files": ("Files", "The archive's binlogs, oldest first.", _PAGED),
    "map": ("Map", "The archive by file and time, in at most some hundred pieces, and what is missing.", ()),
    "replicas": ("Replicas", "Replicas, the furthest behind first; those that left within a day too.", _PAGED),
    "views": ("Views", "The views of relay.toml.", ()),
    "ledger": ("Ledger", "What must be known in a year, newest first.", _PAGED),
    "scrub": ("Scrub", "How far the check of all that is archived has come.", ()),
    "retention": ("Retention", "What [retention] removed, and what keeps it from its limits.", ()),
    "tiers": ("Tiers", "Which binlogs are where, what [archive.tiers] moved, and what it waits for.", ()),
    "mirror": ("Mirror", "How far the copy in the bucket is behind the archive.", ()),
    "history": ("History", "Throughput and lag: each minute of a day, or every 5 s of an hour.", ("resolution",)),
    "positions": ("Position", "Whether a replica may start at a place, and the places around it.", ("file", "offset", "generation")),
}  # fmt: skip
"""For each path below /api/v1/: its schema, its description, its parameters."""
_REQUIRED: Final = {("positions", "file"), ("positions", "offset")}


def document(version: str) -> Schema:
    """Return the whole description. version: the relay's."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "binlog-relay",
            "version": version,
            "description": "The state of a running relay. It only reads. Times are Unix times in seconds, sizes bytes. "
            "Within v1 keys are added, and none is taken away or changed.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{}, {"token": []}],
        "paths": {f"/{path}": {"get": _operation(path, *facts)} for path, facts in PATHS.items()},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _operation(path: str, schema: str, text: str, parameters: tuple[str, ...]) -> Schema:
    def answer(name: str, what: str) -> Schema:
        return {"description": what, "content": {"application/json": {"schema": _ref(name)}}}

    return {
        "operationId": path,
        "summary": text,
        "parameters": [
            {"name": name, "in": "query", "required": (path, name) in _REQUIRED, "schema": _PARAMETERS[name]}
            for name in parameters
        ],
        "responses": {
            "200": answer(schema, "The answer"),
            "400": answer("Error", "A parameter that cannot be"),
            "401": answer("Error", "The token is missing or wrong"),
            "421": answer("Error", "The name in the Host header is not among http.hosts"),
            "503": answer("Error", "It cannot be found out now"),
        },
    }


if __name__ == "__main__":
    print(json.dumps(document("v1"), indent=1))  # noqa: T201 - a command's own output
