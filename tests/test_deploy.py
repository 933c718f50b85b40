"""What `deploy/` says, checked without a container engine: small parsers and the real config."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from middleware import config
from middleware.cli.chat.gateway import running
from middleware.config import ConfigError
from middleware.server.transport.address import GRACE_SECONDS
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
INSTRUCTIONS = frozenset(
    {
        "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "USER",
        "VOLUME", "WORKDIR",
    }
)  # fmt: skip


class Instruction(NamedTuple):
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """Its arguments, in either of the forms a Dockerfile has."""
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


def stages(text: str) -> list[list[Instruction]]:
    """The instructions of a Dockerfile, by stage."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found: list[list[Instruction]] = []
    for line in joined.splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, rest.strip()))
    return found


@pytest.fixture(scope="module")
def built() -> list[list[Instruction]]:
    return stages((DEPLOY / "Dockerfile").read_text("utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))  # type: ignore[no-any-return]  # yaml ships no types


def named(stage: list[Instruction], name: str) -> list[Instruction]:
    return [instruction for instruction in stage if instruction.name == name]


def environment(stage: list[Instruction]) -> Mapping[str, str]:
    pairs = [word.partition("=") for env in named(stage, "ENV") for word in env.words]
    return {name: value for name, _, value in pairs}


# Dockerfile ------------------------------------------------------------------------------------


def test_only_known_instructions_on_a_small_image(built: list[list[Instruction]]) -> None:
    assert {i.name for stage in built for i in stage} <= INSTRUCTIONS
    minor = [re.match(r"python:3\.(\d+)-slim( AS build)?$", stage[0].rest) for stage in built]
    assert all(minor)
    assert len({found[1] for found in minor if found}) == 1  # the virtual environment moves over


def test_everything_installed_is_locked_by_hash(built: list[list[Instruction]]) -> None:
    installs = [
        part.split()
        for stage in built
        for run in named(stage, "RUN")
        for part in run.rest.split("&&")
        if " install " in part and "pip" in part
    ]
    assert len(installs) == 2
    locked, ours = installs
    assert {"--require-hashes", "--no-deps", "requirements.lock"} <= {*locked}
    assert {"--no-deps", "--no-build-isolation", "."} <= {*ours}
    assert not re.search(r"apt-get|apk |curl |wget ", (DEPLOY / "Dockerfile").read_text("utf-8"))


def test_no_build_tool_is_left(built: list[list[Instruction]]) -> None:
    build, final = ("\n".join(i.rest for i in named(stage, "RUN")) for stage in built)
    assert "pip uninstall --yes setuptools pip" in build
    assert "pip uninstall --yes" in final
    assert final.endswith("pip")


def test_it_runs_as_nobody_special_who_owns_the_state(built: list[list[Instruction]]) -> None:
    final = built[-1]
    (user,) = named(final, "USER")
    assert user.rest == "10001"
    made = next(run.rest for run in named(final, "RUN") if "useradd" in run.rest)
    assert "--uid 10001" in made
    (volume,) = named(final, "VOLUME")
    assert f"--owner=usetool --group=usetool {volume.rest}" in made
    order = [instruction.name for instruction in final]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name in ("RUN", "COPY"))


def test_the_state_is_in_the_volume(built: list[list[Instruction]]) -> None:
    program = "from middleware.state.homes import default_folder; print(default_folder())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, **environment(built[-1])} | {"PATH": os.environ["PATH"]},
    )  # fmt: skip
    (volume,) = named(built[-1], "VOLUME")
    assert Path(done.stdout.strip()).as_posix() == volume.rest


def test_what_is_copied_is_there_and_reaches_the_builder(built: list[list[Instruction]]) -> None:
    kept = [line[1:] for line in lines(ROOT / ".dockerignore") if line.startswith("!")]
    assert "*" in lines(ROOT / ".dockerignore")
    for stage in built:
        for copy in named(stage, "COPY"):
            if copy.rest.startswith("--from=build"):
                continue
            for source in copy.words[:-1]:
                assert (ROOT / source).exists(), source
                assert source in kept, source
    for path in ("config.toml", ".git", "tests", ".venv", "deploy/compose.yaml", ".env"):
        assert not any(fnmatch.fnmatch(path, pattern) for pattern in kept), path


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


def test_the_command_serves_the_config_that_is_copied(built: list[list[Instruction]]) -> None:
    final = built[-1]
    (entry,), (command,) = named(final, "ENTRYPOINT"), named(final, "CMD")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert entry.words[0] in scripts
    assert command.words[:2] == ["serve", "--config"]
    path = Path(command.words[2])
    copied = {copy.words[-1]: copy.words[-2] for copy in named(final, "COPY")}
    assert (ROOT / copied[path.parent.as_posix()] / path.name).is_file()


def test_the_health_check_sees_a_gateway_and_its_absence(built: list[list[Instruction]]) -> None:
    (check,) = named(built[-1], "HEALTHCHECK")
    python, option, program = json.loads(check.rest.partition(" CMD ")[2])
    assert (python, option) == ("python", "-c")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (
        f'[recall]\nstore = "off"\n[server]\nport = {port}\n[upstreams.demo]\nkind = "scripted"\n'
    )
    found = config.parse(text + '[models.demo]\nupstream = "demo"', environment={})
    with running(found, lambda _: None) as endpoint:
        listening = endpoint.url.removesuffix("/v1").rpartition(":")[2]
        assert health(program, listening) == 0
    assert health(program, listening) != 0


def health(program: str, port: str) -> int:
    program = program.replace("8000", port)
    proxied = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=proxied, capture_output=True, check=False).returncode


# Compose ---------------------------------------------------------------------------------------

SERVICE = frozenset(
    {
        "build", "cap_drop", "environment", "extra_hosts", "image", "networks", "ports", "profiles",
        "read_only", "restart", "security_opt", "stop_grace_period", "tmpfs", "volumes",
    }
)  # fmt: skip


def test_compose_has_only_known_parts(compose: dict[str, Any]) -> None:
    assert compose.keys() == {"name", "services", "volumes"}
    assert compose["services"].keys() == {"usetool", "ollama"}
    for service in compose["services"].values():
        assert service.keys() <= SERVICE
        assert service["restart"] == "unless-stopped"


def test_the_gateway_is_built_from_the_dockerfile(compose: dict[str, Any]) -> None:
    build = compose["services"]["usetool"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_every_volume_is_declared_and_mounted_where_it_is_used(
    compose: dict[str, Any], built: list[list[Instruction]]
) -> None:
    mounted = [
        mount.split(":") for service in compose["services"].values() for mount in service["volumes"]
    ]
    names = {source for source, *_ in mounted if not source.startswith(".")}
    assert names == compose["volumes"].keys()
    gateway = dict(m.split(":")[:2] for m in compose["services"]["usetool"]["volumes"])
    (volume,), (command,) = named(built[-1], "VOLUME"), named(built[-1], "CMD")
    assert gateway["state"] == volume.rest
    folder = Path(command.words[2])
    assert gateway["./config"] == folder.parent.as_posix()
    assert (DEPLOY / "config" / folder.name).is_file()


def test_nothing_may_be_written_but_the_state(compose: dict[str, Any]) -> None:
    gateway = compose["services"]["usetool"]
    assert gateway["read_only"] is True
    assert gateway["cap_drop"] == ["ALL"]
    assert gateway["security_opt"] == ["no-new-privileges:true"]
    assert "./config:/etc/usetool:ro" in gateway["volumes"]
    assert "privileged" not in gateway


def test_compose_waits_longer_than_the_gateway_for_open_answers(compose: dict[str, Any]) -> None:
    seconds = compose["services"]["usetool"]["stop_grace_period"]
    assert int(seconds.removesuffix("s")) > GRACE_SECONDS


def test_a_key_is_required_and_others_are_not(compose: dict[str, Any]) -> None:
    given = compose["services"]["usetool"]["environment"]
    assert re.fullmatch(r"\$\{USETOOL_KEY:\?.+\}", given["USETOOL_KEY"])
    for name, value in given.items():
        assert name == "USETOOL_KEY" or value == f"${{{name}:-}}"
    text = (DEPLOY / "config/config.toml").read_text("utf-8")
    assert set(re.findall(r'"env:(\w+)"', text)) == given.keys()


def test_published_is_the_port_the_config_listens_on(
    compose: dict[str, Any], built: list[list[Instruction]]
) -> None:
    (port,) = compose["services"]["usetool"]["ports"]
    inside = port.rpartition(":")[2]
    (exposed,) = named(built[-1], "EXPOSE")
    found = config.load(DEPLOY / "config/config.toml", environment={"USETOOL_KEY": "k"})
    assert inside == exposed.rest == str(found.server.port)


def test_ollama_starts_only_if_asked_and_is_where_the_config_looks(compose: dict[str, Any]) -> None:
    assert compose["services"]["ollama"]["profiles"] == ["ollama"]
    assert "profiles" not in compose["services"]["usetool"]
    found = config.load(DEPLOY / "config/config.toml", environment={"USETOOL_KEY": "k"})
    hosts = [up.base_url for up in found.upstreams.values() if up.kind == "ollama"]
    assert hosts == ["http://ollama:11434", "http://host.docker.internal:11434"]
    assert compose["services"]["usetool"]["extra_hosts"] == ["host.docker.internal:host-gateway"]


def test_the_file_for_dify_joins_a_network_that_is_there_already() -> None:
    found = yaml.safe_load((DEPLOY / "dify.yaml").read_text("utf-8"))
    gateway = found["services"]["usetool"]["networks"]
    assert gateway == ["default", "dify"]
    assert found["networks"]["dify"] == {
        "external": True, "name": "${DIFY_NETWORK:-docker_default}",
    }  # fmt: skip


# Config ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment", [{}, {"USETOOL_KEY": ""}])
def test_without_its_key_the_container_does_not_start(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as failed:
        config.load(DEPLOY / "config/config.toml", environment=environment)
    assert "The environment variable USETOOL_KEY is not set" in str(failed.value)


def test_with_no_other_key_the_demo_answers() -> None:
    found = config.load(DEPLOY / "config/config.toml", environment={"USETOOL_KEY": "k"})
    assert found.server.host == "0.0.0.0"
    keyless = [name for name, up in found.upstreams.items() if not up.missing()]
    assert keyless == ["demo", "ollama", "host"]


def test_the_containers_models_mean_what_the_shipped_configs_mean() -> None:
    def stanzas(path: Path, section: str) -> dict[str, Any]:
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))[section]
        return found

    for section in ("upstreams", "models"):
        ours = stanzas(DEPLOY / "config/config.toml", section)
        shipped = stanzas(ROOT / "config.toml", section)
        for name in ours.keys() & shipped.keys() - {"ollama"}:
            assert ours[name] == shipped[name], name


def commands(text: str) -> Iterator[str]:
    yield from re.findall(r"^#\s+(docker .*)$", text, re.MULTILINE)


def test_every_command_in_the_comments_names_files_that_are_there() -> None:
    found = [
        command for path in DEPLOY.iterdir() if path.is_file()
        for command in commands(path.read_text("utf-8"))
    ]  # fmt: skip
    assert len(found) == 4
    for command in found:
        for path in re.findall(r"--file (\S+)", command):
            assert (ROOT / path).is_file(), command


def test_an_older_python_is_refused_in_one_line() -> None:
    """Where no requirement holds, pip has nothing to say but which Python is needed."""
    needed = [line for line in lines(ROOT / "runtime.in") if line]
    assert needed
    assert [line for line in needed if not line.endswith('python_version >= "3.11"')] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
