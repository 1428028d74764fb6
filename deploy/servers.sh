#!/bin/sh
# Makes the environment of the real servers that tests talk to:  deploy/servers.sh PYTHON FOLDER
# About 30 s and 430 MB, once. Apart from the project's own, because MLServer wants older packages.
set -eu
here=$(dirname "$0")
root=$here/..
folder=$2

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; }
python=
for candidate in "$1" python3.12 python3.11; do
    if fits "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "MLServer needs Python 3.11 or 3.12, and there is none: tests that need a real server are skipped." >&2
    [ "${EDGEWAY_REQUIRE_DOCKER:-0}" = 0 ]
    exit
fi
sh "$here/venv.sh" "$python" "$folder"
# Not compiled: that would take half as long again, for modules of which most are never imported.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
    -r "$root/tests/servers/constraints.txt"
"$folder/bin/python" "$root/tests/servers/tiny_gguf.py" "$folder/tiny.gguf"
touch "$folder/.made"
