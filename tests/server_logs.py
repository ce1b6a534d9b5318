"""The logs of the servers that tests started. `tests/conftest.py` shows the end of each with a failure."""

import subprocess
from pathlib import Path
from typing import Any, Final

SHOWN_LOG: Final = 6_000
"""The maximum length in characters of a log's end that is shown."""
server_logs: dict[Path, "subprocess.Popen[Any]"] = {}
"""Each server's log and its process. The next test forgets the servers whose exit was waited for."""
