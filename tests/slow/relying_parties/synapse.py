"""A relying party: Synapse, a Matrix homeserver, on SQLite, with the provider of docs/how-to/oidc/synapse.md."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import yaml
from tests.docs.blocks import block_of


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def settings(place: Path) -> dict[str, object]:
    """Return the settings of the documentation, with the values of this provider."""
    secret = place / "taproof-secret"
    secret.write_text(os.environ["OIDC_CLIENT_SECRET"], "utf-8")
    text = block_of("how-to/oidc/synapse.md", "yaml", "oidc_providers").text
    for example, value in (
        ("https://signin.example.com", os.environ["OIDC_ISSUER"]),
        ("oidc_…", os.environ["OIDC_CLIENT_ID"]),
        ("/etc/matrix-synapse/taproof-secret", str(secret)),
    ):
        assert example in text, example
        text = text.replace(example, value)
    read: dict[str, object] = yaml.safe_load(text)
    return read


if __name__ == "__main__":
    place, port = Path.cwd(), free_port()
    base_url = f"http://127.0.0.1:{port}"
    config = {
        "server_name": "example.test",
        "public_baseurl": f"{base_url}/",
        "pid_file": str(place / "synapse.pid"),
        "listeners": [
            {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
        ],
        "database": {"name": "sqlite3", "args": {"database": str(place / "synapse.db")}},
        "media_store_path": str(place / "media"),
        "signing_key_path": str(place / "signing.key"),
        "log_config": str(place / "log.yaml"),
        "trusted_key_servers": [],
        "report_stats": False,
        # The tests start sign-ins faster than a person does.
        "rc_login": {"address": {"per_second": 100, "burst_count": 100}},
        "ip_range_whitelist": ["127.0.0.1"],
        "sso": {"client_whitelist": [f"{base_url}/"]},
    }
    logging = {
        "version": 1,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"level": "WARNING", "handlers": ["console"]},
    }
    # YAML contains JSON.
    (place / "homeserver.yaml").write_text(json.dumps(config | settings(place)))
    (place / "log.yaml").write_text(json.dumps(logging))
    command = [sys.executable, "-m", "synapse.app.homeserver", "-c", str(place / "homeserver.yaml")]
    subprocess.run([*command, "--generate-keys"], check=True)
    print(json.dumps({"port": port}), flush=True)
    subprocess.run(command, check=False)
