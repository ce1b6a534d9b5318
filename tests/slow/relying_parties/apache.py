"""A relying party: Apache with the settings of docs/how-to/oidc/apache.md. /secure/ shows the user.

`WITHOUT` has lines of the settings to leave out, and `MORE` has lines to add.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

MODULES = (
    *("mpm_event", "authn_core", "authz_core", "authz_user", "auth_openidc", "dir", "mime", "filter", "include", "env"),
)
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Application</title>'
    '<p id="sub"><!--#echo var="OIDC_CLAIM_sub" --></p><p id="name"><!--#echo var="OIDC_CLAIM_name" --></p>'
    '<p id="remote_user"><!--#echo var="REMOTE_USER" --></p><p id="groups"><!--#echo var="OIDC_CLAIM_groups" --></p>'
    '<p id="access_token"><!--#echo var="OIDC_access_token" --></p>'
    '<p id="id_token"><!--#echo var="OIDC_CLAIM_iat" --></p>'
    '<a id="out" href="/secure/callback?logout={home}">Sign out</a></html>'
)
CONFIG = """
ServerRoot {place}
DefaultRuntimeDir {place}
PidFile {place}/apache.pid
Mutex file:{place}
Listen 127.0.0.1:{port}
ServerName 127.0.0.1:{port}
{user}
ErrorLog /dev/stderr
LogLevel warn auth_openidc:info
{modules}
TypesConfig /etc/mime.types
DocumentRoot {place}/site
<Directory {place}/site>
  Require all granted
  Options +Includes
  DirectoryIndex index.shtml
</Directory>
AddType text/html .shtml
AddOutputFilter INCLUDES .shtml
{settings}
<Location /secure/admins/>
  Require claim groups:admins
</Location>
<Location /secure/staff/>
  Require claim groups:staff
</Location>
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def settings(port: int) -> str:
    """Return the settings of the documentation, with the values of this provider."""
    text = Path(__file__).with_name("apache.conf").read_text("utf-8")
    for line in os.environ.get("WITHOUT", "").splitlines():
        assert f"{line}\n" in text, line
        text = text.replace(f"{line}\n", "")
    text += os.environ.get("MORE", "")
    for example, value in (
        ("https://signin.example.com", os.environ["OIDC_ISSUER"]),
        ("https://app.example.com", f"http://127.0.0.1:{port}"),
        ("oidc_…", os.environ["OIDC_CLIENT_ID"]),
        ("ocs_…", os.environ["OIDC_CLIENT_SECRET"]),
    ):
        assert example in text, example
        text = text.replace(example, value)
    return text


def write_site(place: Path, port: int) -> Path:
    """Write the pages, which Apache's account can read, and the configuration; return the configuration's path."""
    (place / "site/secure").mkdir(parents=True)
    place.chmod(0o755)
    home = f"http%3A%2F%2F127.0.0.1%3A{port}%2F"
    (place / "site/index.shtml").write_text('<!doctype html><title>Application</title><a href="/secure/">Sign in</a>')
    for name in ("", "admins/", "staff/"):
        (place / f"site/secure/{name}").mkdir(exist_ok=True)
        (place / f"site/secure/{name}index.shtml").write_text(PAGE.format(home=home))
    config = place / "apache.conf"
    config.write_text(
        CONFIG.format(
            place=place,
            port=port,
            modules="\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES),
            user="User www-data\nGroup www-data" if os.getuid() == 0 else "",
            settings=settings(port),
        )
    )
    return config


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # So that the directory is deleted.
    # The working directory is in one that only its owner can enter.
    with tempfile.TemporaryDirectory(prefix="apache-") as directory:
        port = free_port()
        config = write_site(Path(directory), port)
        print(json.dumps({"port": port}), flush=True)
        subprocess.run(["/usr/sbin/apache2", "-DFOREGROUND", "-f", str(config)], check=False)
