#!/bin/sh
# Makes the virtual environment FOLDER with PYTHON, where there is none that works:  deploy/venv.sh PYTHON FOLDER
# Debian's python3 comes without ensurepip and without pip, so three ways are tried.
set -eu
python=$1
folder=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "edgeway needs Python 3.11 or newer; $python is $("$python" --version). Set PYTHON=python3.11 or newer." >&2
    exit 1
}
if "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi
rm -rf "$folder"
if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    exec "$python" -m venv "$folder"
fi
if "$python" -m pip --version >/dev/null 2>&1 && "$python" -m venv --without-pip "$folder"; then
    # pip 22.3 and newer can install into another environment.
    "$python" -m pip --quiet --python "$folder/bin/python" install pip && exit 0
fi
version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "$python has no ensurepip: installing Debian's $version-venv" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$version-venv" >&2
    rm -rf "$folder"
    exec "$python" -m venv "$folder"
fi
echo "$python can make no virtual environment. Install its venv module first: sudo apt-get install $version-venv" >&2
exit 1
