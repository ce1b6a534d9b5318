#!/bin/sh
# Installs Taproof from this checkout: deploy/install.sh /opt/taproof
# Makes or brings up to date a virtual environment there, which needs nothing of the checkout afterwards: the locked
# requirements, each checked against its hash, and Taproof's own wheel. PYTHON names another interpreter than python3.
set -eu
directory=${1:?"usage: deploy/install.sh DIRECTORY"}
source=$(cd "$(dirname "$0")/.." && pwd)
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

"${PYTHON:-python3}" -m venv "$directory"
pip() { "$directory/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }
# Wheels only: a package that were built here would run its own code first, and need a compiler.
pip install --quiet --require-hashes --only-binary :all: -r "$source/requirements/run.txt"
pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir "$wheels" "$source"
# The version may be the one that is there already, of another commit.
pip install --quiet --no-deps --no-index --force-reinstall "$wheels"/*.whl
pip check
