"""A proxy that adds to fake-gcs-server the missing parts of Google's XML interface: plain uploads, uploads in parts, and lists that
begin after a name.

All other requests and answers pass unchanged: objects, ranges, lists, removals.
"""

import http.client
import re
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

_SIGNED: Final = "X-Goog-Algorithm=any"
"""With it, the server takes a plain PUT for one with a signed URL, which it knows."""
_CONTENTS: Final = re.compile(rb"<Contents><Key>(.*?)</Key>.*?</Contents>")


class GoogleUploads:
    """A proxy that `with` starts and ends. `behind` is the emulator's port."""

    def __init__(self, behind: int) -> None:
        parts: dict[str, dict[int, bytes]] = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                length = next((value for name, value in headers if name.lower() == "content-length"), str(len(body)))
                self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _pass(
                self, path: str, body: bytes | None, method: str = ""
            ) -> tuple[int, list[tuple[str, str]], bytes]:
                link = http.client.HTTPConnection("127.0.0.1", behind, timeout=30)
                try:
                    kept = {name: value for name, value in self.headers.items() if name.lower() in ("range", "host")}
                    link.request(method or self.command, path, body, kept)
                    answer = link.getresponse()
                    return answer.status, answer.getheaders(), answer.read()
                finally:
                    link.close()

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                place = urlsplit(self.path)
                asked = parse_qs(place.query, keep_blank_values=True)
                upload = asked.get("uploadId", [""])[0]
                if "uploads" in asked:
                    upload = secrets.token_hex(8)
                    parts[upload] = {}
                    names = f"<Bucket>b</Bucket><Key>k</Key><UploadId>{upload}</UploadId>"
                    self._answer(
                        200, [], f"<InitiateMultipartUploadResult>{names}</InitiateMultipartUploadResult>".encode()
                    )
                elif "partNumber" in asked:
                    parts[upload][int(asked["partNumber"][0])] = body
                    self._answer(200, [("ETag", '"part"')], b"")
                elif upload and self.command == "DELETE":
                    parts.pop(upload, None)
                    self._answer(204, [], b"")
                elif upload:
                    whole = b"".join(data for _number, data in sorted(parts.pop(upload).items()))
                    self._pass(f"{place.path}?{_SIGNED}", whole, "PUT")
                    self._answer(
                        200, [], b'<CompleteMultipartUploadResult><ETag>"all"</ETag></CompleteMultipartUploadResult>'
                    )
                elif self.command == "PUT":
                    status, headers, told = self._pass(f"{place.path}?{_SIGNED}", body)
                    self._answer(status, [*headers, ("ETag", '"one"')], told)
                else:
                    status, headers, told = self._pass(self.path, body or None)
                    if "start-after" in asked:
                        behind_it = asked["start-after"][0].encode()
                        told = _CONTENTS.sub(lambda one: one[0] if one[1] > behind_it else b"", told)
                    self._answer(status, headers, told)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

            def log_message(self, *_words: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "GoogleUploads":
        threading.Thread(target=self._server.serve_forever, name="google-uploads", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
