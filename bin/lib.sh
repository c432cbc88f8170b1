# Shared by the commands beside it. Sourced with the checkout as working directory.

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in "${OBSRV_PYTHON:-}" .venv/bin/python \
        python3.13 python3.12 python3.11 python3.14 python3 python; do
        if [ -n "$candidate" ] && is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    echo "Obsrv needs Python 3.11 or newer, and found none." >&2
    echo "Install one (python.org, apt install python3.11-venv, brew install python@3.13)," >&2
    echo "or name it: OBSRV_PYTHON=/path/to/python3 $0" >&2
    return 1
}

# make_environment LOCK: .venv holds at least what LOCK pins.
make_environment() {
    python=$(find_python) || exit 1
    "$python" bin/environment.py "$1" || exit 1
}
