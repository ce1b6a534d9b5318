#!/usr/bin/env bash
# Locks requirements/*.txt to the newest versions that pyproject.toml allows, with hashes but no index address.
set -euo pipefail
cd "$(dirname "$0")/.."
compile=(.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-annotate
  --python-version 3.11 --custom-compile-command "make lock")
"${compile[@]}" pyproject.toml --extra server --extra otel --group build -o requirements/run.txt
"${compile[@]}" pyproject.toml --extra server --extra otel --group build --group docs --group test -c requirements/run.txt -o requirements/test.txt
"${compile[@]}" pyproject.toml --extra server --extra otel --group build --group docs --group test --group bench -c requirements/test.txt -o requirements/bench.txt
"${compile[@]}" --group docs -c requirements/test.txt -o requirements/docs.txt
"${compile[@]}" --group relying-parties -c requirements/test.txt -o requirements/relying-parties.txt
"${compile[@]}" --group release -c requirements/test.txt -o requirements/release.txt
