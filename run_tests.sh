#!/usr/bin/env bash
# Runs the tests in .venv, which it makes or brings up to date first. Arguments go to
# pytest:
#
#   ./run_tests.sh                             all but the slow ones
#   ./run_tests.sh --slow                      all
#   ./run_tests.sh tests/data -k tokenization  some
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./setup_env.sh --dev
./setup_env.sh --minilm ||
    echo "Going on without the pre-trained weights: the tests that need them skip." >&2
exec .venv/bin/python -m pytest -n 2 "$@"
