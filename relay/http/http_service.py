"""The HTTP port: access, answers, and limits that keep it from costing the replicas anything."""

import asyncio
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import structlog
from aiohttp import web

from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive_inspection.scrub import Scrub
from relay.config import Config, HttpSection, ServerSource
from relay.downstream.clients import Clients
from relay.fairness.address_group import address_group
from relay.fairness.fair_pool import TURN, FairPool
from relay.fairness.fair_queue import Rank, Turn
from relay.http.answers.metrics_page import CONTENT_TYPE, MetricsPage
from relay.http.answers.not_ready import reasons_not_ready
from relay.http.answers.openapi import PATHS
from relay.http.api import Api
from relay.http.bearer_token import BearerToken
from relay.http.bounded_server import HEADERS, BoundedConnection, BoundedServer
from relay.http.error_answer import encoded_json, error_answer
from relay.http.facts.relay_watch import FollowedSource, RelayWatch
from relay.http.facts.upkeep import Upkeep
from relay.http.host_check import HostCheck
from relay.http.page.page_files import PAGE_POLICY, PageFile, page_files
from relay.http.query_parameters import Unanswerable
from relay.process.background import tell_fault
from relay.process.certificates import ServerTls
from relay.process.duration_histogram import DurationHistogram
from relay.process.slow_thread import take_least_priority

log = structlog.get_logger("relay.http")

_API: Final = "/api/v1/"
_METRICS: Final = "/metrics"
_OPEN: Final = ("/healthz", "/readyz")
_KEPT_S: Final = 0.5
"""A page is kept for so long: a thousand scrapers at once get the same one."""
_TOLD_EVERY_S: Final = 60.0


class HttpService:
    """`start`, then `close`; on the event loop only. relay_version: as it names itself."""

    def __init__(self, section: HttpSection, watch: RelayWatch, relay_version: str) -> None:
        self._section = section
        self._watch = watch
        self._token = BearerToken(section.token_text())
        self._hosts = HostCheck(section.host, section.hosts)
        self._tls: ServerTls | None = None
        self._thread = FairPool(1, "http-answers", begin=take_least_priority)
        histograms = {
            "kernel_seconds": watch.source.tally.kernel_times,
            "archive_sync_seconds": watch.sync_times,
            "loop_delay_seconds": watch.loop_times,
        }
        self._page = MetricsPage(relay_version, section.ready_behind_s, histograms)
        self._api = Api(watch, section.ready_behind_s, relay_version, self._in_thread)
        self._server: BoundedServer | None = None
        self._metrics = (0.0, b"")
        self._rendering = asyncio.Lock()
        self._files = page_files()
        self._told_at = float("-inf")
        self._untold = 0

    async def start(self, tls: ServerTls | None) -> None:
        """Listen. Raises: OSError."""
        section = self._section
        self._tls = tls
        self._server = BoundedServer(
            self._answer, max_connections=section.max_connections, request_timeout_s=section.request_timeout_s
        )
        self._server.refusals = self._watch.http_refusals
        self._server.on_refusal = lambda: self._refused("too_many_connections", None)
        await self._server.listen(section.host, section.port, tls.context if tls is not None else None)
        self._watch.begin()
        log.info(
            "http_listening",
            host=section.host,
            port=section.port,
            tls="on" if tls is not None else "off",
            access="token" if self._token.is_needed else "open",
        )

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.stop_listening()
            self._server.pre_shutdown()
            await self._server.shutdown(0.5)
        await self._watch.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def reload(self, config: Config) -> None:
        """Take over token, names and certificate after SIGHUP, for connections from now on. Raises: OSError, KeyError for the token."""
        section, tls = config.http, config.http_tls
        self._token = BearerToken(section.token_text())
        self._hosts = HostCheck(self._section.host, section.hosts)
        self._watch.slow.certificate_files = certificate_files(config)
        self._watch.applied.take(config)
        if tls is not None and self._tls is not None and section.tls_cert is not None:
            # The listening socket keeps its context: the contents of that are replaced.
            self._tls.context.load_cert_chain(section.tls_cert, section.tls_key, password="")

    # --- one request -------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if isinstance(request.protocol, BoundedConnection):
            request.protocol.answer_begins()
        TURN.set(Turn(address_group(request.remote or ""), rank=Rank.KNOWN))
        path = request.path
        try:
            response = await self._found(request, path)
        except Unanswerable as error:
            response = error_answer(error)
        except asyncio.CancelledError:
            raise
        except Exception as fault:
            tell_fault("http_answer_failed", fault, path=_named(path))
            response = error_answer(Unanswerable(500, "fault", "a fault of binlog-relay: its log has more"))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        self._watch.http_requests[_named(path), response.status] += 1
        return response

    async def _found(self, request: web.BaseRequest, path: str) -> web.Response:
        if not self._hosts.lets_in(request.headers.getall("Host", ())):
            self._refused("host", request)
            raise Unanswerable(421, "host_refused", "not asked by this name: add it to http.hosts of relay.toml")
        if request.method not in ("GET", "HEAD"):
            raise Unanswerable(405, "method_refused", "only GET and HEAD: nothing can be changed here")
        if request.can_read_body:
            self._refused("body", request)
            raise Unanswerable(413, "body_refused", "requests have no body here")
        if path == "/healthz":
            return web.Response(text="ok\n")
        if path == "/readyz":
            return self._ready()
        if path in self._files:
            # The page itself is not secret: its requests need the token.
            return _of_page(request, self._files[path])
        if not self._token.lets_in(request.headers.get("Authorization")):
            self._refused("token", request)
            raise Unanswerable(401, "token_wrong", "show the token: Authorization: Bearer ...")
        if path == _METRICS:
            return web.Response(body=await self._rendered(), headers={"Content-Type": CONTENT_TYPE})
        if path.startswith(_API):
            answer = await self._api.answer(path.removeprefix(_API), request.query)
            body = await self._in_thread(encoded_json, answer)
            return web.Response(body=body, content_type="application/json", charset="utf-8")
        raise Unanswerable(404, "path_unknown", f"there are /, {_METRICS}, {', '.join(_OPEN)} and {_API}openapi.json")

    def _ready(self) -> web.Response:
        reasons = reasons_not_ready(self._watch.snapshot(), self._section.ready_behind_s)
        if not reasons:
            return web.Response(text="ready\n")
        return web.Response(status=503, text="".join(f"{one.name}: {one.text}\n" for one in reasons))

    async def _rendered(self) -> bytes:
        async with self._rendering:
            made_at, page = self._metrics
            if time.monotonic() - made_at > _KEPT_S or not page:
                shot = self._watch.snapshot()
                page = await self._in_thread(self._page.render, shot, self._server.open if self._server else 0)
                self._metrics = (time.monotonic(), page)
            return page

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _refused(self, why: str, request: web.BaseRequest | None) -> None:
        """Count a refusal, and log one a minute: a peer may come as often as it likes."""
        if why != "too_many_connections":
            self._watch.http_refusals[why] += 1
        now = time.monotonic()
        if now - self._told_at < _TOLD_EVERY_S:
            self._untold += 1
            return
        log.warning("http_refused", why=why, address=request.remote if request else None, left_out=self._untold)
        self._told_at, self._untold = now, 0


def monitoring(
    config: Config,
    archive: Archive,
    source: FollowedSource,
    clients: Clients,
    scrub: Scrub,
    console: Console,
    upkeep: Upkeep,
    sync_times: DurationHistogram,
) -> HttpService:
    """Return the service that answers about these parts. sync_times: of the archive's fdatasync."""
    watch = RelayWatch(
        archive,
        source,
        clients,
        scrub,
        console,
        upkeep,
        sync_times=sync_times,
        certificate_files=certificate_files(config),
    )
    watch.applied.take(config)
    return HttpService(config.http, watch, version("binlog-relay"))


def certificate_files(config: Config) -> dict[str, Path]:
    """Return the certificates that the relay shows, by their use."""
    source = config.source
    given = {
        "listen": config.listen.tls_cert,
        "http": config.http.tls_cert,
        "source": source.ssl_cert if isinstance(source, ServerSource) else None,
    }
    return {use: path for use, path in given.items() if path is not None}


def _named(path: str) -> str:
    """Return the path as metrics count it: existing paths, and one name for all others."""
    if path in (*_OPEN, _METRICS, "/"):
        return path
    name = path.removeprefix(_API)
    return path if path.startswith(_API) and (name in PATHS or name == "openapi.json") else "other"


def _of_page(request: web.BaseRequest, file: PageFile) -> web.Response:
    headers = {"ETag": file.mark, "Cache-Control": "no-cache", "Content-Security-Policy": PAGE_POLICY}
    if request.headers.get("If-None-Match") == file.mark:
        return web.Response(status=304, headers=headers)
    return web.Response(body=file.content, headers={**headers, "Content-Type": file.content_type})
