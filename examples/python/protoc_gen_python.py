"""The generators of grpcio-tools, as a plugin of buf: for messages and for gRPC."""

import sys
import tempfile
from pathlib import Path

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

request = CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
response = CodeGeneratorResponse(supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
with tempfile.TemporaryDirectory() as place:
    descriptors = Path(place, "descriptors")
    descriptors.write_bytes(FileDescriptorSet(file=request.proto_file).SerializeToString())
    made = Path(place, "made")
    made.mkdir()
    options = [f"--descriptor_set_in={descriptors}", f"--python_out={made}", f"--grpc_python_out={made}"]
    if protoc.main(["protoc", *options, *request.file_to_generate]) != 0:
        raise SystemExit("protoc failed")
    for file in made.rglob("*.py"):
        response.file.add(name=str(file.relative_to(made)), content=file.read_text())
sys.stdout.buffer.write(response.SerializeToString())
