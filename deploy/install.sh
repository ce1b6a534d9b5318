#!/bin/sh
# Installs Taproof from this checkout: deploy/install.sh /opt/taproof
# Creates or updates a virtual environment there with the locked requirements, each checked against its hash, and
# Taproof's own wheel. It does not need the checkout afterwards. PYTHON names an interpreter other than python3.
set -eu
directory=${1:?"usage: deploy/install.sh DIRECTORY"}
source=$(cd "$(dirname "$0")/.." && pwd)
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

"${PYTHON:-python3}" -m venv "$directory"
pip() { "$directory/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }
# Wheels only: building a package here would run its code and need a compiler.
pip install --quiet --require-hashes --only-binary :all: -r "$source/requirements/run.txt"
pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir "$wheels" "$source"
# The installed version may have the same number but come from another commit.
pip install --quiet --no-deps --no-index --force-reinstall "$wheels"/*.whl
pip check
