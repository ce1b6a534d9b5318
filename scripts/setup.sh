#!/usr/bin/env bash
# Sets up the environment of the Makefile's targets. Usage: setup.sh run | test | bench
# `run`: a virtual environment in .venv with the locked requirements, and Taproof in it, from the built wheel.
# `test`: the same, and the tools of the tests, Chromium, PgBouncer, and the npm packages of tests/npm and sdk/js.
# `bench`: additional tools of `make bench`; the benchmarks install their peers themselves.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }

# Install Debian packages, as root or through sudo; without either, name the missing packages and exit.
debian() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "Please install these Debian packages first: $*"; exit 1; }
    as_root=(sudo)
  fi
  say "Installing from Debian's packages: $*"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2
}

python_of_choice() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"; return
    fi
  done
  say "Taproof needs Python 3.11 or newer. Install it, or name it: PYTHON=/path/to/python3.11 make run"
  exit 1
}

environment() { # environment run|test
  local python
  if ! .venv/bin/python -c '' 2>/dev/null || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(python_of_choice)
    rm -rf .venv
    "$python" -c 'import ensurepip' 2>/dev/null || debian python3-venv
    say "Creating a virtual environment in .venv"
    "$python" -m venv .venv
  fi
  if ! cmp -s "requirements/$1.txt" ".venv/requirements-$1.txt"; then
    say "Installing the locked requirements (requirements/$1.txt)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "requirements/$1.txt"
    cp "requirements/$1.txt" ".venv/requirements-$1.txt"
  fi
  rm -rf build/wheel
  .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl
}

# Install the packages of a folder's package-lock.json if it has changed.
npm_packages() { # npm_packages FOLDER
  local home=$1
  cmp -s "$home/package-lock.json" "$home/node_modules/.installed-package-lock.json" && return
  say "Installing the locked npm packages ($home/package-lock.json)"
  (cd "$home" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  # Last, so that an interrupted installation is repeated.
  cp "$home/package-lock.json" "$home/node_modules/.installed-package-lock.json"
}

case "${1:-}" in
  run)
    environment run
    touch .venv/.run
    ;;
  test)
    missing=()
    [ -x /usr/bin/chromium ] || missing+=(chromium)
    [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
    for program in openssl nginx slowhttptest sqlite3; do
      command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || missing+=("$program")
    done
    [ ${#missing[@]} = 0 ] || debian "${missing[@]}"
    environment test
    export PATH="$PWD/.venv/bin:$PATH" # Its Node.js and npm.
    npm_packages tests/npm
    npm_packages sdk/js
    touch .venv/.test # Last, so that a failed step is repeated.
    ;;
  bench)
    missing=()
    for program in wrk nginx npm; do
      command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || missing+=("$program")
    done
    [ ${#missing[@]} = 0 ] || debian "${missing[@]}"
    environment bench
    ;;
  *) say "usage: scripts/setup.sh run|test|bench"; exit 2 ;;
esac
