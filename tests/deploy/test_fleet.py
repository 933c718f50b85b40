"""`deploy/fleet`, checked without a container engine: compose, nginx, and the real config."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from middleware import config
from middleware.server.transport.address import GRACE_SECONDS
from tests.support.paths import ROOT

FLEET = ROOT / "deploy" / "fleet"
GATEWAYS = ("gateway-1", "gateway-2")
SERVICE = frozenset(
    {
        "build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image",
        "networks", "ports", "read_only", "restart", "security_opt", "stop_grace_period",
        "stop_signal", "tmpfs", "volumes",
    }
)  # fmt: skip
SET = {
    "USETOOL_KEY": "k", "USETOOL_ADMIN_KEY": "a", "USETOOL_SECRET": "s",
    "STATE_URL": "redis://redis:6379/0", "LEDGER_URL": "postgresql://usetool:p@postgres/usetool",
}  # fmt: skip


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FLEET / "compose.yaml").read_text("utf-8"))
    return found


# Compose ---------------------------------------------------------------------------------------


def test_compose_has_only_known_parts(compose: dict[str, Any]) -> None:
    assert compose.keys() == {"name", "x-gateway", "services", "networks", "volumes"}
    assert compose["services"].keys() == {*GATEWAYS, "nginx", "redis", "postgres"}
    for service in compose["services"].values():
        assert service.keys() <= SERVICE
        assert service["restart"] == "unless-stopped"
        assert {*service["networks"]} <= compose["networks"].keys()


def test_the_gateways_are_the_same_and_have_nothing_of_their_own(compose: dict[str, Any]) -> None:
    first, second = (compose["services"][name] for name in GATEWAYS)
    assert first == second
    build = first["build"]
    assert (FLEET / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    assert first["volumes"] == ["./config:/etc/usetool:ro"]
    assert first["read_only"] is True
    assert first["cap_drop"] == ["ALL"]
    assert any(mount.startswith("/var/lib/usetool:uid=10001") for mount in first["tmpfs"])


def test_what_is_kept_is_reached_by_the_gateways_alone(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, one in services.items() if "ports" in one] == ["nginx"]
    assert compose["networks"]["kept"] == {"internal": True}
    assert {n for n, one in services.items() if "front" in one["networks"]} == {*GATEWAYS, "nginx"}
    mounted = {
        mount.partition(":")[0]
        for name in ("redis", "postgres")
        for mount in services[name]["volumes"]
    }
    assert mounted == compose["volumes"].keys()


def test_redis_forgets_nothing_that_was_spent(compose: dict[str, Any]) -> None:
    command = " ".join(compose["services"]["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_everybody_says_how_it_is(compose: dict[str, Any]) -> None:
    services = compose["services"]
    checks = {name: one["healthcheck"]["test"] for name, one in services.items()
              if name not in GATEWAYS}  # fmt: skip
    assert all(check[0] == "CMD" for check in checks.values())
    assert checks["nginx"][-1].endswith(":8080/readyz")
    waits = services["nginx"]["depends_on"]
    assert waits == {name: {"condition": "service_healthy"} for name in GATEWAYS}
    assert "HEALTHCHECK" in (ROOT / "deploy" / "Dockerfile").read_text("utf-8")


def test_everybody_waits_for_open_answers(compose: dict[str, Any]) -> None:
    for name in (*GATEWAYS, "nginx"):
        seconds = compose["services"][name]["stop_grace_period"]
        assert int(seconds.removesuffix("s")) > GRACE_SECONDS
    assert compose["services"]["nginx"]["stop_signal"] == "SIGQUIT"


def test_secrets_are_required_and_keys_of_upstreams_are_not(compose: dict[str, Any]) -> None:
    given = compose["services"]["gateway-1"]["environment"]
    text = (FLEET / "config" / "config.toml").read_text("utf-8")
    assert set(re.findall(r'"env:(\w+)"', text)) == given.keys()
    for name, value in given.items():
        if name.startswith("USETOOL_"):
            assert re.fullmatch(rf"\$\{{{name}:\?.+\}}", value)
        elif not name.endswith("_URL"):
            assert value == f"${{{name}:-}}"
    ledger = compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert f"postgresql://usetool:{ledger}@postgres:5432/usetool" == given["LEDGER_URL"]


# Config ----------------------------------------------------------------------------------------


def test_the_gateways_start_with_what_compose_gives_them(compose: dict[str, Any]) -> None:
    read = config.load(FLEET / "config" / "config.toml", environment=SET)
    given = compose["services"]["gateway-1"]["environment"]
    assert (read.state.url, read.ledger.url) == (given["STATE_URL"], SET["LEDGER_URL"])
    assert read.state.secret is not None
    assert read.clients["operator"].admin
    assert read.models["chat"].choices == ("sonnet", "gpt")


@pytest.mark.parametrize("name", sorted(SET))
def test_without_what_they_share_they_do_not_start(name: str) -> None:
    lacking = {one: value for one, value in SET.items() if one != name}
    with pytest.raises(config.ConfigError) as failed:
        config.load(FLEET / "config" / "config.toml", environment=lacking)
    assert name in str(failed.value)


# nginx -----------------------------------------------------------------------------------------

Block = dict[str, Any]


def parsed(text: str) -> Block:
    """nginx's language: directives that end with a semicolon, and blocks of them."""
    text = re.sub(r"#[^\n]*", "", text)
    words = re.findall(r"[{};]|[^\s{};]+", text)
    root: Block = {}
    open_blocks, line = [root], list[str]()
    for word in words:
        if word == ";":
            open_blocks[-1].setdefault(line[0], []).append(line[1:])
            line = []
        elif word == "{":
            block: Block = {}
            open_blocks[-1][" ".join(line)] = block
            open_blocks.append(block)
            line = []
        elif word == "}":
            assert not line
            open_blocks.pop()
        else:
            line.append(word)
    assert (len(open_blocks), line) == (1, [])
    return root


@pytest.fixture(scope="module")
def nginx() -> Block:
    return parsed((FLEET / "nginx.conf").read_text("utf-8"))


def test_nginx_asks_both_gateways_and_finds_them_anew(
    nginx: Block, compose: dict[str, Any]
) -> None:
    upstream = nginx["http"]["upstream gateways"]
    port = config.load(FLEET / "config" / "config.toml", environment=SET).server.port
    assert [one[:2] for one in upstream["server"]] == [
        [f"{name}:{port}", "resolve"] for name in GATEWAYS
    ]
    assert "resolver" in nginx["http"]  # which `resolve` needs, with a zone
    assert "zone" in upstream
    published = compose["services"]["nginx"]["ports"][0].rpartition(":")[2]
    assert nginx["http"]["server"]["listen"] == [[published]]


def test_nginx_holds_no_event_back_and_asks_nobody_twice(nginx: Block) -> None:
    location = nginx["http"]["server"]["location /"]
    assert location["proxy_pass"] == [["http://gateways"]]
    assert location["proxy_buffering"] == location["gzip"] == [["off"]]
    assert location["proxy_http_version"] == [["1.1"]]
    (again,) = location["proxy_next_upstream"]
    assert "non_idempotent" not in again
    total = 600  # of [defaults.timeouts], if it is not given
    assert int(location["proxy_read_timeout"][0][0].removesuffix("s")) > total


def test_nginx_shows_no_figures_of_one_gateway_as_those_of_all(nginx: Block) -> None:
    assert nginx["http"]["server"]["location = /metrics"] == {"return": [["404"]]}
