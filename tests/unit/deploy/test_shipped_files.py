"""The files by which the relay is run: units, images, manifests. Each is judged by the tool that knows its form."""

import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from relay.config import Config
from relay.config.sections import ServerSource
from tests.support.described_json import differences
from tests.support.service_monitor_schema import SERVICE_MONITOR

ROOT = Path(__file__).resolve().parents[3]
SYSTEMD = ROOT / "deploy" / "systemd"
KUBERNETES = ROOT / "deploy" / "kubernetes"
UNIT = SYSTEMD / "binlog-relay.service"
MOST_EXPOSED = 20
"""Tenths: 2.0 of systemd's 10."""

with_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")


def tool(name: str) -> str:
    """A program that the environment of the tests has."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is missing: pip install '.[dev]'")
    return found


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, check=False)


def settings(name: str) -> list[str]:
    """The values of a setting of the unit, in their order."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


# --- systemd ---------------------------------------------------------------------------------------------------------


@with_systemd
def test_the_unit_is_exposed_to_2_at_most() -> None:
    done = run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", UNIT)
    assert done.returncode == 0, done.stdout
    assert "Overall exposure level" in done.stdout


@with_systemd
def test_a_unit_without_its_fences_is_too_exposed(tmp_path: Path) -> None:
    # systemd 252 counts in tenths, and takes 2.0 for 20: this fails where that is no longer so.
    bare = tmp_path / UNIT.name
    kept = [line for line in UNIT.read_text().splitlines() if not line.startswith(("Protect", "Private", "SystemCall"))]
    bare.write_text("\n".join(kept))
    assert run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", bare).returncode != 0


@with_systemd
def test_systemd_understands_each_line_of_the_unit() -> None:
    done = run("systemd-analyze", "verify", "--man=no", UNIT)
    wrong = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert wrong == []


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is missing")
def test_the_account_of_the_unit_is_made_by_sysusers(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    done = run("systemd-sysusers", f"--root={tmp_path}", SYSTEMD / "binlog-relay.sysusers.conf")
    assert done.returncode == 0, done.stderr
    assert f"{settings('User')[0]}:" in (tmp_path / "etc" / "passwd").read_text()
    assert f"{settings('Group')[0]}:" in (tmp_path / "etc" / "group").read_text()


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd-tmpfiles is missing")
def test_the_directories_of_the_unit_are_made_by_tmpfiles(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", SYSTEMD / "binlog-relay.sysusers.conf")
    done = run("systemd-tmpfiles", "--create", f"--root={tmp_path}", SYSTEMD / "binlog-relay.tmpfiles.conf")
    assert done.returncode == 0, done.stderr
    for made in ("etc/binlog-relay", "var/lib/binlog-relay"):
        assert (tmp_path / made).stat().st_mode & 0o777 == 0o750


def test_the_unit_hands_over_the_credentials_that_the_pages_name() -> None:
    names = {value.partition(":")[0] for value in settings("LoadCredential")}
    page = (ROOT / "docs" / "RUNNING.md").read_text()
    assert set(re.findall(r'password_credential = "([^"]+)"', page)) == names
    assert settings("Type") == ["notify"]
    assert int(settings("LimitNOFILE")[0]) >= 65536


# --- images ----------------------------------------------------------------------------------------------------------


def test_the_linter_of_dockerfiles_has_nothing_to_say() -> None:
    done = run(tool("hadolint"), "--no-color", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_dockerfile_copies_is_there_and_not_ignored() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] not in "#"]
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if not line.startswith("COPY") or "--from" in line:
            continue
        for name in line.split()[1:-1]:
            assert (ROOT / name).exists(), name
            kept = [one for one in ignored if one.startswith("!") and fnmatch.fnmatch(name, one[1:])]
            assert kept, f"{name} is not in the context"


def test_the_image_runs_as_nobody_in_particular() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE) == ["10001:10001"]
    assert "HEALTHCHECK" in text


def loaded(path: Path) -> Config:
    """A sample, without its passwords' files, which are not here."""
    data = tomllib.loads(path.read_text())
    data["source"].setdefault("kind", "server")
    if "http" not in Config.model_fields:
        del data["http"]
    return Config.model_validate(data)


@pytest.mark.parametrize("path", [ROOT / "deploy/container/compose/relay.toml", KUBERNETES / "relay.toml"], ids=str)
def test_the_samples_of_containers_are_configurations(path: Path) -> None:
    config = loaded(path)
    assert isinstance(config.source, ServerSource)
    assert str(config.archive.dir) == "/var/lib/binlog-relay"
    # Probes and metrics come from outside of the container.
    assert tomllib.loads(path.read_text())["http"] == {
        "enabled": True, "host": "0.0.0.0",
    } | ({"token_file": "/etc/binlog-relay-secret/http.token"} if path.parent == KUBERNETES else {})  # fmt: skip


def test_the_compose_file_has_a_source_and_a_replica_around_the_relay() -> None:
    place = ROOT / "deploy" / "container" / "compose"
    services = yaml.safe_load((place / "compose.yaml").read_text())["services"]
    assert set(services) == {"source", "relay", "replica"}
    assert (place / services["relay"]["build"]["context"]).resolve() == ROOT
    for service in services.values():
        for volume in service["volumes"]:
            if volume.startswith("./"):
                assert (place / volume.partition(":")[0]).is_file(), volume
    config = tomllib.loads((place / "relay.toml").read_text())
    assert config["source"]["host"] == "source"
    replica = (place / "replica.sql").read_text()
    assert f"SOURCE_USER = '{config['account'][0]['user']}'" in replica
    assert f"SOURCE_PASSWORD = '{config['account'][0]['password']}'" in replica
    assert (
        f"'{config['source']['user']}'@'%' IDENTIFIED BY '{config['source']['password']}'"
        in (place / "source.sql").read_text()
    )


# --- Kubernetes ------------------------------------------------------------------------------------------------------


def manifests() -> dict[str, dict[str, Any]]:
    found = [yaml.safe_load(path.read_text()) for path in sorted(KUBERNETES.glob("*.yaml"))]
    return {str(one["kind"]): one for one in found}


@pytest.mark.parametrize("name", ["statefulset.yaml", "service.yaml"])
def test_the_manifests_are_of_the_schema_of_kubernetes(name: str) -> None:
    done = run(tool("kubernetes-validate"), "--strict", KUBERNETES / name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_manifest_with_a_word_that_kubernetes_has_not_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "statefulset.yaml"
    wrong.write_text((KUBERNETES / "statefulset.yaml").read_text().replace("livenessProbe", "lifeProbe"))
    assert run(tool("kubernetes-validate"), "--strict", wrong).returncode != 0


def test_the_service_monitor_has_nothing_but_what_its_operator_knows() -> None:
    manifest = manifests()["ServiceMonitor"]
    assert differences(manifest, SERVICE_MONITOR, {}) == []
    # Prometheus takes durations such as 15s; the job's name in the alert rules is that of the service.
    assert all(re.fullmatch(r"[1-9][0-9]*(ms|s|m|h)", one["interval"]) for one in manifest["spec"]["endpoints"])
    assert manifests()["Service"]["metadata"]["name"] == "binlog-relay"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("endpoints:", "endpoint:"),
        ("matchLabels", "matchLabel"),
        ("http.token", "17"),
        ("path: /metrics", "paths: [/metrics]"),
    ],
)
def test_a_service_monitor_with_a_slip_of_the_pen_is_refused(right: str, wrong: str) -> None:
    text = (KUBERNETES / "service-monitor.yaml").read_text()
    assert right in text
    assert differences(yaml.safe_load(text.replace(right, wrong)), SERVICE_MONITOR, {}) != []


def test_the_manifests_name_each_other() -> None:
    found = manifests()
    pod = found["StatefulSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    labels = pod["metadata"]["labels"]
    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == ports
    monitor = found["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == found["Service"]["metadata"]["labels"]
    assert {one["port"] for one in monitor["endpoints"]} <= {port["name"] for port in found["Service"]["spec"]["ports"]}
    assert container["readinessProbe"]["httpGet"]["port"] in ports
    # Whether it lives is not asked at a port, which others may flood.
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"][-1] in (ROOT / "Dockerfile").read_text()
    mounted = {one["name"] for one in container["volumeMounts"]}
    claims = {one["metadata"]["name"] for one in found["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert mounted == claims | {one["name"] for one in pod["spec"]["volumes"]}
    assert set(found["Kustomization"]["resources"]) == {"service.yaml", "statefulset.yaml", "service-monitor.yaml"}
    (secret,) = found["Kustomization"]["secretGenerator"]
    used = set(re.findall(r"/etc/binlog-relay-secret/(\S+?)\"", (KUBERNETES / "relay.toml").read_text()))
    assert set(secret["files"]) == used


def test_the_user_of_the_pod_is_that_of_the_image() -> None:
    security = manifests()["StatefulSet"]["spec"]["template"]["spec"]["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"]) == (10001, 10001, True)


# --- wheels ----------------------------------------------------------------------------------------------------------


def test_wheels_are_built_for_each_python_that_is_supported_on_linux_and_macos() -> None:
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    built = set[str]()
    for system, machines in (("linux", "x86_64,aarch64"), ("macos", "arm64")):
        done = run(tool("cibuildwheel"), "--platform", system, "--archs", machines, "--print-build-identifiers", ROOT)
        assert done.returncode == 0, done.stderr
        built |= set(done.stdout.split())
    assert least == ">=3.11"
    for python in ("cp311", "cp312", "cp313", "cp314"):
        for platform in (
            "manylinux_x86_64",
            "manylinux_aarch64",
            "musllinux_x86_64",
            "musllinux_aarch64",
            "macosx_arm64",
        ):
            assert f"{python}-{platform}" in built
    assert not [one for one in built if "win" in one or "i686" in one]
