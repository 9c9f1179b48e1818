"""A real Prometheus, of Debian's package, that scrapes a relay once a second."""

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
    """The directory with prometheus and promtool; taken from Debian's package where they are missing. Raises: ServerUnavailable."""
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


def impatient_rules(text: str) -> str:
    """The same rules, that wait for seconds where the others wait for minutes."""
    text = re.sub(r"for: \w+", "for: 0s", text)
    text = re.sub(r"\[\d+m\]", "[45s]", text)
    return text.replace("offset 10m", "offset 8s").replace("lag_seconds > 300", "lag_seconds > 2")


class PrometheusServer:
    """`with` starts it and ends it. target: host:port."""

    def __init__(self, directory: Path, port: int, target: str, token: str) -> None:
        directory.mkdir()
        self._directory, self._port = directory, port
        (directory / "rules.yml").write_text(impatient_rules(RULES.read_text(encoding="utf-8")), encoding="utf-8")
        (directory / "token").write_text(token, encoding="utf-8")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(directory / "rules.yml")],
            "scrape_configs": [
                {
                    "job_name": "binlog-relay",
                    "authorization": {"credentials_file": str(directory / "token")},
                    "static_configs": [{"targets": [target]}],
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
        wait_until(lambda: self.ask("up") == [1.0], "Prometheus to scrape the relay", 60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, expression: str) -> list[float]:
        """The values that an expression has now."""
        try:
            found = self._got("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        except OSError:
            return []
        return [float(one["value"][1]) for one in found["data"]["result"]]

    def fires(self, alert: str) -> bool:
        """Whether the alert of that name fires now."""
        return bool(self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing"}}'))

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        alerts = self._got("/api/v1/alerts")["data"]["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def _got(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
            return json.load(answer)
