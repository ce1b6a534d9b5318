"""A relying party: Synapse, a Matrix homeserver, on SQLite, with single sign-on as its documentation sets it up."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
        "ip_range_whitelist": ["127.0.0.1"],
        "sso": {"client_whitelist": [f"{base_url}/"]},
        "oidc_providers": [
            {
                "idp_id": "taproof",
                "idp_name": "Messenger",
                "issuer": os.environ["OIDC_ISSUER"],
                "client_id": os.environ["OIDC_CLIENT_ID"],
                "client_secret": os.environ["OIDC_CLIENT_SECRET"],
                "scopes": ["openid", "profile"],
                "user_mapping_provider": {
                    "config": {"localpart_template": "u{{ user.sub }}", "display_name_template": "{{ user.name }}"}
                },
                "backchannel_logout_enabled": True,
            }
        ],
    }
    logging = {
        "version": 1,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"level": "WARNING", "handlers": ["console"]},
    }
    # YAML contains JSON.
    (place / "homeserver.yaml").write_text(json.dumps(config))
    (place / "log.yaml").write_text(json.dumps(logging))
    command = [sys.executable, "-m", "synapse.app.homeserver", "-c", str(place / "homeserver.yaml")]
    subprocess.run([*command, "--generate-keys"], check=True)
    print(json.dumps({"port": port}), flush=True)
    subprocess.run(command, check=False)
