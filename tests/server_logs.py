"""The logs of the servers that tests started. `tests/conftest.py` shows the end of each with a failure."""

import subprocess
from pathlib import Path
from typing import Any, Final

SHOWN_LOG: Final = 6_000
"""How many characters of a log are shown."""
server_logs: dict[Path, "subprocess.Popen[Any]"] = {}
"""The processes by their log. The next test forgets those whose end has been waited for."""
