"""docs/how-to/deploy-kubernetes.md: its additions fit the manifests."""

import shutil
import subprocess
from pathlib import Path

import yaml
from tests.docs.blocks import ROOT, block_of

PAGE = "how-to/deploy-kubernetes.md"
MANIFESTS = ROOT / "deploy/kubernetes"


def test_the_registry_s_password_reaches_every_pod(tmp_path: Path) -> None:
    """Kustomize applies the page's patch, and then each Deployment's pods have the registry secret."""
    kubectl = shutil.which("kubectl")
    patch = yaml.safe_load(block_of(PAGE, "yaml", "patches:").text)
    (one,) = patch["patches"]
    (operation,) = yaml.safe_load(one["patch"])
    assert (operation["op"], operation["path"]) == ("add", "/spec/template/spec/imagePullSecrets")
    if kubectl is None:
        return  # kubectl does the rest.
    place = tmp_path / "kubernetes"
    shutil.copytree(MANIFESTS, place)
    shutil.copy(place / "secret.example.env", place / "secret.env")
    with (place / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(block_of(PAGE, "yaml", "patches:").text)
    done = subprocess.run([kubectl, "kustomize", str(place)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    deployments = [each for each in yaml.safe_load_all(done.stdout) if each["kind"] == "Deployment"]
    assert len(deployments) == 3
    assert all(each["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}] for each in deployments)


def test_prometheus_is_let_in_to_every_pod() -> None:
    """The page's policy selects the same pods as the denying one, at the image's port."""
    policy = yaml.safe_load(block_of(PAGE, "yaml", "taproof-metrics").text)
    every, _ = yaml.safe_load_all((MANIFESTS / "network-policy.yaml").read_text(encoding="utf-8"))
    assert policy["spec"]["podSelector"] == every["spec"]["podSelector"]
    ((port,),) = [rule["ports"] for rule in policy["spec"]["ingress"]]
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text(encoding="utf-8")
    assert f"EXPOSE {port['port']}\n" in dockerfile
