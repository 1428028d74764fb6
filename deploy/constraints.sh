#!/bin/sh
# Writes the three hashed lists:  deploy/constraints.sh UV [--upgrade]
# Versions already listed stay unless --upgrade is given. The hashes are those of all files of a version, so the
# lists serve x86-64 and arm64 alike. No host name gets into them.
set -eu
uv=$1
shift
compile() {
    "$uv" pip compile --quiet --generate-hashes --no-header --no-emit-index-url --no-annotate \
        --python-version 3.11 --python-platform x86_64-manylinux_2_28 "$@" >/dev/null
}
compile pyproject.toml --group dev --all-extras -o constraints.txt "$@"
# What the image needs: no broker, no tools, no models of the library. Same versions, by construction.
compile pyproject.toml --group build --extra s3 --extra grpc --extra images --extra otel -c constraints.txt -o deploy/docker/constraints.txt
# The real servers of the tests, which stand in an environment of their own.
compile tests/servers/servers.in -o tests/servers/constraints.txt "$@"
