"""docs/how-to/deploy-kubernetes.md: its additions fit the manifests."""

import yaml
from tests.docs.blocks import ROOT, block_of

PAGE = "how-to/deploy-kubernetes.md"
MANIFESTS = ROOT / "deploy/kubernetes"


def test_the_registry_s_password_reaches_every_pod() -> None:
    """The page's patch adds the registry secret to the pods of every Deployment, and replaces nothing."""
    (patch,) = yaml.safe_load(block_of(PAGE, "yaml", "patches:").text)["patches"]
    assert patch["target"] == {"kind": "Deployment"}
    path = "/spec/template/spec/imagePullSecrets"
    assert yaml.safe_load(patch["patch"]) == [{"op": "add", "path": path, "value": [{"name": "registry"}]}]
    manifests = [each for file in MANIFESTS.glob("*.yaml") for each in yaml.safe_load_all(file.read_text("utf-8"))]
    deployments = [each for each in manifests if each.get("kind") == "Deployment"]
    assert len(deployments) == 3
    assert all("imagePullSecrets" not in each["spec"]["template"]["spec"] for each in deployments)


def test_prometheus_is_let_in_to_every_pod() -> None:
    """The page's policy selects the same pods as the denying one, at the port that every container declares.

    Prometheus finds a target for each declared port, so no address is named.
    """
    policy = yaml.safe_load(block_of(PAGE, "yaml", "taproof-metrics").text)
    every, _ = yaml.safe_load_all((MANIFESTS / "network-policy.yaml").read_text(encoding="utf-8"))
    assert policy["spec"]["podSelector"] == every["spec"]["podSelector"]
    ((port,),) = [rule["ports"] for rule in policy["spec"]["ingress"]]
    for role in ("api", "worker", "bot"):
        deployment = yaml.safe_load((MANIFESTS / f"{role}.yaml").read_text(encoding="utf-8"))
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert [each["name"] for each in container["ports"]] == [port["port"]]
    (job,) = yaml.safe_load(block_of(PAGE, "yaml", "scrape_configs").text)["scrape_configs"]
    assert "__address__" not in [each["target_label"] for each in job["relabel_configs"]]
