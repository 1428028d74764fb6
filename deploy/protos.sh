#!/bin/sh
# Writes the messages of the Open Inference Protocol anew from their .proto:  deploy/protos.sh PYTHON
# PYTHON has grpcio-tools 1.76: what it writes serves protobuf 6.31 and newer, so 7 too; a newer one would shut out 6.
set -eu
cd "$(dirname "$0")/.."
exec "$1" -m grpc_tools.protoc -I . --python_out=. workers/backends/open_inference_proto/open_inference.proto
