"""A real Prometheus, of Debian's package, that scrapes relays once a second."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from deploy.servers.location import ServerUnavailable, locked, root_directory
from tests.support.chain import wait_until

_PACKAGE: Final = "prometheus"
RULES: Final = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "binlog-relay.rules.yml"


def prometheus_tools() -> Path:
    """Return the directory with prometheus and promtool, from Debian's package if they are missing. Raises: ServerUnavailable."""
    tree = root_directory() / _PACKAGE
    tools = tree / "usr" / "bin"
    with locked(_PACKAGE):
        if not (tools / "promtool").exists():
            tree.mkdir(parents=True, exist_ok=True)
            try:
                subprocess.run(
                    ["apt-get", "download", _PACKAGE], cwd=tree, check=True, capture_output=True, timeout=120
                )
                package = next(tree.glob("*.deb"))
                subprocess.run(["dpkg-deb", "-x", package, tree], check=True, capture_output=True, timeout=60)
                package.unlink()
            except (OSError, subprocess.SubprocessError, StopIteration) as error:
                raise ServerUnavailable(f"Debian's package {_PACKAGE} cannot be had: {error}") from error
    return tools


def impatient_rules(text: str, window: str = "45s") -> str:
    """Return the same rules with seconds in place of minutes. `window` is what they count in."""
    text = re.sub(r"for: \w+", "for: 0s", text)
    text = re.sub(r"\[\d+m\]", f"[{window}]", text)
    return text.replace("offset 10m", "offset 8s").replace("lag_seconds > 300", "lag_seconds > 2")


class PrometheusServer:
    """A server that `with` starts and ends. `target` is host:port; with None `watch` names one later. `window` is what the rules count
    in."""

    def __init__(self, directory: Path, port: int, target: str | None, token: str, window: str = "45s") -> None:
        directory.mkdir()
        self._directory, self._port, self._target = directory, port, target
        self.watch(*([] if target is None else [target]))
        rules = impatient_rules(RULES.read_text(encoding="utf-8"), window)
        (directory / "rules.yml").write_text(rules, encoding="utf-8")
        (directory / "token").write_text(token, encoding="utf-8")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(directory / "rules.yml")],
            "scrape_configs": [
                {
                    "job_name": "binlog-relay",
                    "authorization": {"credentials_file": str(directory / "token")},
                    "file_sd_configs": [{"files": [str(self._targets)], "refresh_interval": "1s"}],
                }
            ],
        }
        (directory / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    prometheus_tools() / "prometheus",
                    f"--config.file={self._directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: self.ask("vector(1)") == [1.0], "Prometheus to answer", 60)
        if self._target is not None:
            wait_until(lambda: self.ask("up") == [1.0], "Prometheus to scrape the relay", 60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _targets(self) -> Path:
        return self._directory / "targets.json"

    def watch(self, *targets: str) -> None:
        """Scrape these targets, each host:port, and no others from now on."""
        part = self._targets.with_suffix(".part")
        part.write_text(json.dumps([{"targets": targets}]), encoding="utf-8")
        part.rename(self._targets)

    def ask(self, expression: str) -> list[float]:
        """Return the current values of an expression."""
        try:
            found = self._got("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        except OSError:
            return []
        return [float(one["value"][1]) for one in found["data"]["result"]]

    def fires(self, alert: str) -> bool:
        """Return whether the alert of that name fires now."""
        return bool(self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing"}}'))

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        return {one["labels"]["alertname"] for one in self.alerts()}

    def alerts(self, target: str | None = None) -> list[dict[str, dict[str, str]]]:
        """Return what fires now, for one target or for all, with `labels` and `annotations`."""
        found = self._got("/api/v1/alerts")["data"]["alerts"]
        return [one for one in found if one["state"] == "firing" and target in (None, one["labels"].get("instance"))]

    def _got(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
            return json.load(answer)
