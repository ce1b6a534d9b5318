"""The Kubernetes manifests fit each other, the image, the settings and the cluster.

The rules are those of the API reference and of the Pod Security Standard "restricted".
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.dockerfile import read_dockerfile

from taproof.cli.doctor.address import check_address
from taproof.config.options import PREFIX
from taproof.config.settings import Settings, load_settings
from taproof.core.encryption import new_master_key
from taproof.runtime.supervisor import STOP_SECONDS

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
IMAGE = read_dockerfile(ROOT / "deploy/docker/Dockerfile")[1][-1]
ROLES = ("api", "worker", "bot")
SECRETS = {
    "TAPROOF_DATABASE_URL": "postgresql://taproof:secret@db.internal:5432/taproof",
    "TAPROOF_MASTER_KEY": new_master_key(bytes),
    "TAPROOF_BOT_TOKEN": "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
}
FILLED_IN = {"TAPROOF_TRUSTED_PROXY": "10.244.7.0/24"}

Manifest = dict[str, Any]


def read(name: str) -> list[Manifest]:
    """Return the documents of a file."""
    return list(yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8")))


def variables(name: str) -> dict[str, str]:
    """Return the variables of a file of NAME=value lines."""
    return dict(re.findall(r"^(\w+)=(.*)$", (KUBERNETES / name).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def kustomization() -> Manifest:
    """Return the file that `kubectl apply -k` starts with."""
    (found,) = read("kustomization.yaml")
    return found


@pytest.fixture(params=ROLES)
def deployment(request: pytest.FixtureRequest) -> Manifest:
    """Return each Deployment, one for each role."""
    (found,) = read(f"{request.param}.yaml")
    return found


def container_of(deployment: Manifest) -> Manifest:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found: Manifest = container
    return found


def settings_of(deployment: Manifest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return the settings that the container's process gets from the image, the ConfigMap and the Secret."""
    given = variables("settings.env")
    assert given["TAPROOF_TRUSTED_PROXY"] == "", "to be filled in: a network that is wrong trusts strangers"
    environment = dict(re.findall(r"(TAPROOF_\w+)=(\S+)", IMAGE.one("ENV"))) | given | FILLED_IN
    for each in container_of(deployment)["env"]:
        key = each.get("valueFrom", {}).get("secretKeyRef", {}).get("key")
        environment[each["name"]] = SECRETS[key] if key else each["value"]
    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return load_settings({})


def test_every_manifest_is_applied_and_is_what_it_says(kustomization: Manifest) -> None:
    """Each file is listed as a resource and each resource is a file; no two objects share kind and name."""
    assert set(kustomization["resources"]) == {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    kinds = {
        "Namespace": "v1",
        "Service": "v1",
        "Deployment": "apps/v1",
        "Ingress": "networking.k8s.io/v1",
        "NetworkPolicy": "networking.k8s.io/v1",
        "PodDisruptionBudget": "policy/v1",
    }
    objects = [each for name in kustomization["resources"] for each in read(name)]
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))
    assert {each["kind"]: each["apiVersion"] for each in objects} == kinds


def test_the_image_is_this_release(kustomization: Manifest, deployment: Manifest) -> None:
    """The Deployments use the image name that kustomize replaces, with the tag of this release."""
    (image,) = kustomization["images"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert container_of(deployment)["image"] == image["name"]
    assert image["newTag"] == project["version"]


def test_pods_fit_the_restricted_standard(deployment: Manifest) -> None:
    """Pods do not run as root, gain no privilege, have no capability, and write only to /tmp."""
    pod = deployment["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    # The user is that of the image, a number. OpenShift refuses pods that choose one themselves.
    assert context.keys().isdisjoint({"runAsUser", "runAsGroup", "fsGroup"})
    assert re.fullmatch(r"[1-9]\d+:\d+", IMAGE.one("USER"))
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container_of(deployment)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "initContainers", "serviceAccountName"}
    assert all(volume.keys() == {"name", "emptyDir"} for volume in pod["volumes"])
    assert [mount["mountPath"] for mount in container_of(deployment)["volumeMounts"]] == ["/tmp"]  # noqa: S108
    (namespace,) = read("namespace.yaml")
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}


def test_the_port_is_set_in_one_place(deployment: Manifest) -> None:
    """The process listens on the container's port, whatever settings.env says; everything else refers to its name."""
    container = container_of(deployment)
    assert {"name": "TAPROOF_PORT", "value": str(container["ports"][0]["containerPort"])} in container["env"]
    assert [port["name"] for port in container["ports"]] == ["http"]
    (service,) = read("service.yaml")
    (ingress,) = read("ingress.yaml")
    named = [service["spec"]["ports"][0]["targetPort"]]
    named += [each["backend"]["service"]["port"]["name"] for each in ingress["spec"]["rules"][0]["http"]["paths"]]
    named += [port["port"] for rule in read("network-policy.yaml")[1]["spec"]["ingress"] for port in rule["ports"]]
    assert set(named) == {"http"}


def test_no_service_can_be_taken_for_a_setting(deployment: Manifest) -> None:
    """Kubernetes does not set TAPROOF_PORT=tcp://… for a Service called taproof."""
    assert deployment["spec"]["template"]["spec"]["enableServiceLinks"] is False
    (service,) = read("service.yaml")
    assert service["metadata"]["name"].upper().replace("-", "_").startswith(PREFIX)


def test_each_role_runs_with_what_it_needs_and_no_more(deployment: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role has valid settings and secrets, and only the bot has the bot's token."""
    role = deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
    settings = settings_of(deployment, monkeypatch)
    assert settings.role == role
    assert settings.needs_bot == (settings.bot_token is not None) == (role == "bot")
    assert settings.master_key is not None
    assert settings.database_url == SECRETS["TAPROOF_DATABASE_URL"]
    assert check_address(settings).status == "ok"
    assert variables("secret.example.env") == dict.fromkeys(SECRETS, "")


def test_probes_ask_what_the_image_can_answer(deployment: Manifest) -> None:
    """Liveness and readiness differ: a missing database takes a pod out of service but does not kill it."""
    container = container_of(deployment)
    script = IMAGE.one("HEALTHCHECK").partition("CMD ")[2]
    asked = {}
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        program, path, asked[kind] = container[kind]["exec"]["command"]
        assert f'"{program}"' in script
        assert f'"{path}"' in script
        # The script itself gives up after 5 seconds and prints why.
        assert container[kind]["timeoutSeconds"] > 5
    assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


def test_a_rolling_update_loses_nothing(deployment: Manifest) -> None:
    """A new pod is ready before an old one stops, and the old one has the time that draining takes."""
    assert deployment["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    pause = (
        container_of(deployment).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])[1]
    )
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > int(pause) + STOP_SECONDS
    assert int(pause) > 0 or deployment["metadata"]["name"] != "taproof-api"


def test_labels_select_what_they_are_meant_for() -> None:
    """Each selector matches the pods of the role that it names, and no others."""
    pods = {role: read(f"{role}.yaml")[0]["spec"]["template"]["metadata"]["labels"] for role in ROLES}

    def selected(labels: dict[str, str]) -> set[str]:
        return {role for role, own in pods.items() if labels.items() <= own.items()}

    for role in ROLES:
        assert selected(read(f"{role}.yaml")[0]["spec"]["selector"]["matchLabels"]) == {role}
    assert selected(read("service.yaml")[0]["spec"]["selector"]) == {"api"}
    assert selected(read("disruption-budget.yaml")[0]["spec"]["selector"]["matchLabels"]) == {"api"}
    every, api = (each["spec"] for each in read("network-policy.yaml"))
    assert selected(every["podSelector"]["matchLabels"]) == set(ROLES)
    assert selected(api["podSelector"]["matchLabels"]) == {"api"}
    (budget,) = read("disruption-budget.yaml")
    assert budget["spec"]["minAvailable"] < read("api.yaml")[0]["spec"]["replicas"], "else no node could be drained"


def test_nobody_is_let_in_but_the_ingress() -> None:
    """Only the ingress reaches the pods, which may reach the internet but no private network."""
    every, api = (each["spec"] for each in read("network-policy.yaml"))
    assert every["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in every
    ((source,),) = [rule["from"] for rule in api["ingress"]]
    assert source == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    assert all(rule["to"] and rule["ports"] for rule in every["egress"])
    (internet,) = [rule for rule in every["egress"] if any(port["port"] == 443 for port in rule["ports"])]
    assert {port["port"] for port in internet["ports"]} == {443, 8443}, "the default of TAPROOF_WEBHOOK_PORTS"
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(
        internet["to"][0]["ipBlock"]["except"]
    )


def test_the_ingress_is_that_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ingress's host is that of the base URL. tests/deploy/test_routes.py tests its paths."""
    (ingress,) = read("ingress.yaml")
    (rule,) = ingress["spec"]["rules"]
    (tls,) = ingress["spec"]["tls"]
    (service,) = read("service.yaml")
    (api,) = read("api.yaml")
    assert [rule["host"]] == tls["hosts"]
    assert settings_of(api, monkeypatch).base_url == f"https://{rule['host']}"
    for path in rule["http"]["paths"]:
        assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"name": "http"}}
