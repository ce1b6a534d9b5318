#!/usr/bin/env bash
# Builds the files of a release from the current commit: build_release.sh DIRECTORY
# python/: the wheel and the source distribution. npm/: the package. sbom/: the software that each contains, as CycloneDX.
# SHA256SUMS: the checksums of all of them. Two builds of one commit give the same bytes. Run `make release`.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$(realpath -m "${1:?"usage: scripts/build_release.sh DIRECTORY"}")
export PATH="$PWD/build/release-venv/bin:$PATH"

say() { # In bold on a terminal.
  if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}

# Only committed files: a working tree may contain others.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive HEAD | tar -x -C "$source"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # See reproducible-builds.org/specs/source-date-epoch.
export SOURCE_DATE_EPOCH
umask 022
rm -rf "$directory"
mkdir -p "$directory"/{python,npm,sbom}

say "[1/3] The wheel and the source distribution"
(cd "$source" && hatchling build -t sdist -t wheel -d "$directory/python" >&2)

say "[2/3] The npm package"
(cd "$source/sdk/js" && npm pack --loglevel=error --pack-destination "$directory/npm" >&2)

say "[3/3] The SBOMs and the checksums"
(cd "$source" && cyclonedx-py requirements requirements/run.txt --pyproject pyproject.toml --mc-type application \
  --spec-version 1.6 --output-reproducible -o "$directory/sbom/taproof-server.cdx.json" >&2)
(cd "$source/sdk/js" && npm sbom --package-lock-only --omit=dev --omit=peer --sbom-format=cyclonedx --sbom-type=library) \
  >"$directory/sbom/taproof-npm.cdx.json"
(cd "$directory" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
say "The files are in $directory."
