"""What an sdist and a wheel are made of."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OURS = ("protocol", "relay")
SHIPPED = [
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "deploy/man/binlog-relay.1",
    "deploy/completions/_binlog-relay",
]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of this checkout, made beside it."""
    place = tmp_path_factory.mktemp("sdist")
    source = place / "source"
    source.mkdir()
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not names:
        pytest.skip("not a checkout of git")
    for name in names:
        wanted = name.startswith((*OURS, "deploy/man", "deploy/completions")) or "/" not in name
        if wanted and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    made = subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check", "--outdir", str(place)],
        cwd=source,
        env={"PATH": "/usr/bin:/bin", "BINLOG_RELAY_KERNEL": "skip", "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (made_file,) = place.glob("*.tar.gz")
    return made_file


@pytest.fixture(scope="module")
def sdist(packed: Path) -> set[str]:
    """The names in it."""
    with tarfile.open(packed) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_an_sdist_has_all_that_a_compilation_needs(sdist: set[str]) -> None:
    # Eight declarations (.pxd) were once missing: what was made of the sdist ran uncompiled, and nobody was told why.
    tracked = subprocess.run(["git", "ls-files", *OURS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name for name in tracked.split() if (ROOT / name).is_file()} - sdist == set()


def test_an_sdist_has_what_is_shipped_beside_the_code_and_no_tests(sdist: set[str]) -> None:
    assert set(SHIPPED) <= sdist
    assert not [name for name in sdist if name.startswith("tests")]


@pytest.mark.parametrize(("compiler", "answer"), [("/nonexistent/cc", "False"), ("false", "False"), (None, "True")])
def test_a_build_knows_whether_it_can_compile(compiler: str | None, answer: str) -> None:
    if compiler is None and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    environment = {key: value for key, value in os.environ.items() if key not in ("CC", "BINLOG_RELAY_KERNEL")}
    if compiler is not None:
        environment["CC"] = compiler
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import setup; print(setup.can_compile())"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[-1:] == [answer], done.stderr
    assert ("BINLOG_RELAY_KERNEL=require" in done.stderr) == (answer == "False")


def run(*words: object, **environment: str) -> str:
    """What it prints; in no environment but this, and without a compiler."""
    given = {"PATH": "/nonexistent", "HOME": "/nonexistent", "CC": "/nonexistent/cc", **environment}
    done = subprocess.run([str(word) for word in words], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_of_the_sdist_runs_in_an_empty_environment_without_a_compiler(packed: Path, tmp_path: Path) -> None:
    with tarfile.open(packed) as archive:
        # Debian 12's Python (3.11.2) knows no filters.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = tmp_path.glob("binlog_relay-*")
    build = (
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--skip-dependency-check",
        "--outdir",
        tmp_path / "dist",
        source,
    )
    run(sys.executable, *build, HOME=str(tmp_path))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    empty = tmp_path / "empty"
    run(sys.executable, "-m", "venv", "--without-pip", empty)
    inside = empty / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", inside, "install", "--no-deps", "--no-index", wheel, HOME=str(tmp_path)
    )
    # What it depends on comes from the environment of the tests: no registry is asked.
    own = Path(run(inside, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (own / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    command = empty / "bin" / "binlog-relay"
    assert run(command, "--version").startswith("binlog-relay ")
    place = run(inside, "-I", "-c", "import protocol.kernel.ingest as one; print(one.__file__)").strip()
    assert place == str(own / "protocol" / "kernel" / "ingest.py")
    assert (empty / "share" / "man" / "man1" / "binlog-relay.1").is_file()
    binlogs = sorted((ROOT / "deploy" / "recorded").glob("mysql-bin.*"))
    assert run(command, "events", binlogs[0]).count("\n") > 3
