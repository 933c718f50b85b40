"""`deploy/kubernetes`: the fields Kubernetes requires, none it does not know, and what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from middleware import config
from middleware.server.transport.address import GRACE_SECONDS
from tests.support.paths import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
Json = dict[str, Any]

# Of each object: its fields, those behind ! are required; a list has one shape for all items.
META = {"!name": str, "labels": dict}
SELECTOR = {"!matchLabels": dict}
PROBE = {
    "!httpGet": {"!path": str, "!port": str}, "periodSeconds": int, "timeoutSeconds": int,
    "failureThreshold": int,
}  # fmt: skip
RESOURCES = {"cpu": str, "memory": str}
CONTAINER = {
    "!name": str, "!image": str, "imagePullPolicy": str,
    "ports": [{"!containerPort": int, "name": str}],
    "envFrom": [{"!secretRef": {"!name": str}}],
    "volumeMounts": [{"!name": str, "!mountPath": str, "readOnly": bool}],
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"!command": [str]}}},
    "resources": {"requests": RESOURCES, "limits": RESOURCES},
    "securityContext": {
        "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
        "capabilities": {"drop": [str]},
    },
}  # fmt: skip
POD = {
    "!containers": [CONTAINER], "automountServiceAccountToken": bool,
    "terminationGracePeriodSeconds": int,
    "securityContext": {
        "runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "fsGroup": int,
        "seccompProfile": {"!type": str},
    },
    "topologySpreadConstraints": [
        {"!maxSkew": int, "!topologyKey": str, "!whenUnsatisfiable": str, "labelSelector": SELECTOR}
    ],
    "volumes": [{"!name": str, "configMap": {"!name": str}, "emptyDir": {}}],
}  # fmt: skip
KINDS: Mapping[tuple[str, str], Json] = {
    ("v1", "ConfigMap"): {"!data": dict},
    ("apps/v1", "Deployment"): {
        "!spec": {
            "!selector": SELECTOR,
            "!template": {"!metadata": {"!labels": dict}, "!spec": POD},
            "strategy": {
                "!type": str, "rollingUpdate": {"maxSurge": int, "maxUnavailable": int},
            },
        }
    },
    ("v1", "Service"): {
        "!spec": {"!selector": dict, "!ports": [{"name": str, "!port": int, "targetPort": str}]}
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "!spec": {
            "!scaleTargetRef": {"!apiVersion": str, "!kind": str, "!name": str},
            "minReplicas": int, "!maxReplicas": int,
            "metrics": [
                {
                    "!type": str,
                    "resource": {
                        "!name": str, "!target": {"!type": str, "averageUtilization": int},
                    },
                }
            ],
            "behavior": {
                "scaleDown": {
                    "stabilizationWindowSeconds": int,
                    "policies": [{"!type": str, "!value": int, "!periodSeconds": int}],
                }
            },
        }
    },
    ("policy/v1", "PodDisruptionBudget"): {"!spec": {"maxUnavailable": int, "!selector": SELECTOR}},
}  # fmt: skip


def mistakes(value: Any, shape: Any, at: str) -> Iterator[str]:
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            yield f"{at} is no list of something"
            return
        for place, item in enumerate(value):
            yield from mistakes(item, shape[0], f"{at}[{place}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            yield f"{at} is no table"
            return
        known = {name.removeprefix("!"): inner for name, inner in shape.items()}
        required = {name[1:] for name in shape if name.startswith("!")}
        yield from (f"{at}.{name} is missing" for name in required - value.keys())
        for name, inner in value.items():
            if name not in known:
                yield f"{at}.{name} is unknown"
            else:
                yield from mistakes(inner, known[name], f"{at}.{name}")
    elif type(value) is not shape:
        yield f"{at} is no {shape.__name__}"


def objects_of(text: str) -> dict[str, Json]:
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def objects() -> dict[str, Json]:
    found = [objects_of(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.yaml"))]
    return {kind: one for each in found for kind, one in each.items()}


def checked(one: Json) -> list[str]:
    shape = {
        "!apiVersion": str,
        "!kind": str,
        "!metadata": META,
        **KINDS[one["apiVersion"], one["kind"]],
    }
    return [*mistakes(one, shape, one["kind"])]


def test_every_object_has_the_fields_it_must_have_and_no_other(objects: dict[str, Json]) -> None:
    assert {(one["apiVersion"], kind) for kind, one in objects.items()} == KINDS.keys()
    assert [found for one in objects.values() for found in checked(one)] == []
    names = [one["metadata"]["name"] for one in objects.values()]
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("containers: [{name: a}]", "containers[0].image is missing"),
        ("containers: []", "containers is no list of something"),
        ("container: []", "container is unknown"),
        ("{containers: [{name: a, image: 1}]}", "image is no str"),
    ],
)
def test_the_check_finds_what_is_wrong(wrong: str, said: str) -> None:
    assert any(said in one for one in mistakes(yaml.safe_load(wrong), POD, "pod"))


@pytest.fixture(scope="module")
def pod(objects: dict[str, Json]) -> Json:
    found: Json = objects["Deployment"]["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def gateway(pod: Json) -> Json:
    (found,) = pod["containers"]
    assert isinstance(found, dict)
    return found


def test_everything_means_the_same_pods(objects: dict[str, Json]) -> None:
    deployment = objects["Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert objects["Service"]["spec"]["selector"] == labels
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    target = objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert target == {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"],
    }  # fmt: skip


def test_ports_and_volumes_are_those_that_are_there(
    objects: dict[str, Json], pod: Json, gateway: Json
) -> None:
    (port,) = gateway["ports"]
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert {gateway[f"{probe}Probe"]["httpGet"]["port"] for probe in
            ("startup", "readiness", "liveness")} == {port["name"]}  # fmt: skip
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["name"]: mount["mountPath"] for mount in gateway["volumeMounts"]}
    assert volumes.keys() == mounted.keys()
    assert mounted == {
        "config": "/etc/usetool", "state": "/var/lib/usetool", "temporary": "/tmp",
    }  # fmt: skip
    assert volumes["config"]["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]


def test_who_is_asked_is_ready_and_who_is_slow_is_not_killed(gateway: Json) -> None:
    paths = {name: gateway[f"{name}Probe"]["httpGet"]["path"] for name in
             ("startup", "readiness", "liveness")}  # fmt: skip
    assert paths == {"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}
    alive = gateway["livenessProbe"]
    assert alive["periodSeconds"] * alive["failureThreshold"] >= 60


def test_it_stops_when_nobody_sends_any_more_and_answers_have_ended(
    pod: Json, gateway: Json
) -> None:
    command = gateway["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep"
    assert pod["terminationGracePeriodSeconds"] > int(command[1]) + GRACE_SECONDS + 10


def test_it_may_do_nothing_but_serve(pod: Json, gateway: Json) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    assert f"USER {pod['securityContext']['runAsUser']}\n" in dockerfile
    assert pod["automountServiceAccountToken"] is False
    own = gateway["securityContext"]
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
    assert own["capabilities"]["drop"] == ["ALL"]


def test_an_update_and_a_drained_node_leave_somebody_who_serves(objects: dict[str, Json]) -> None:
    assert "replicas" not in objects["Deployment"]["spec"]  # an apply would undo the scaler
    assert objects["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    scaler = objects["HorizontalPodAutoscaler"]["spec"]
    assert scaler["maxReplicas"] >= scaler["minReplicas"] >= 2
    assert objects["PodDisruptionBudget"]["spec"]["maxUnavailable"] < scaler["minReplicas"]


def test_the_config_takes_every_secret_by_reference(
    objects: dict[str, Json], gateway: Json
) -> None:
    text = objects["ConfigMap"]["data"]["config.toml"]
    secrets = set(re.findall(r'"env:(\w+)"', text))
    values = {"STATE_URL": "redis://:p@redis/0", "LEDGER_URL": "postgresql://u:p@db/usetool"}
    read = config.parse(text, environment={name: values.get(name, name) for name in secrets})
    assert read.server.port == gateway["ports"][0]["containerPort"]
    assert (read.state.url, read.ledger.url) == (*values.values(),)
    told = (FOLDER / "gateway.yaml").read_text("utf-8")
    assert set(re.findall(r"--from-literal=(\w+)=", told)) == secrets
    assert gateway["envFrom"] == [{"secretRef": {"name": "usetool"}}]
