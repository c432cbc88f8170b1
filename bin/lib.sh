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

has_browser() {
    for name in "${CHROMIUM_PATH:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
            return
        fi
    done
    .venv/bin/python - <<'PYTHON' 2>/dev/null
import os, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    sys.exit(not os.path.exists(playwright.chromium.executable_path))
PYTHON
}

# find_browser: a Chromium for the tests of the console, where one can be had for nothing.
find_browser() {
    if has_browser; then
        return
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "== installing chromium for the tests of the console"
        patience="-o Acquire::http::Timeout=20 -o Acquire::Retries=1"
        # shellcheck disable=SC2086  # several words
        if { apt-get $patience update && DEBIAN_FRONTEND=noninteractive apt-get $patience \
            install -y --no-install-recommends chromium; } >/dev/null 2>&1 </dev/null; then
            return
        fi
    fi
    echo "== no Chromium found: the tests of the console in a browser are skipped" >&2
    echo "   (install chromium, or name it: CHROMIUM_PATH=/path/to/chromium $0)" >&2
}

# make_environment LOCK: .venv holds at least what LOCK pins.
make_environment() {
    python=$(find_python) || exit 1
    "$python" bin/environment.py "$1" || exit 1
}
