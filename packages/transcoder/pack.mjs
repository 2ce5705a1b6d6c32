import { pack } from "../../scripts/pack.mjs";

pack({
  "node_modules/@protobufs/google/api/annotations.proto": "third-party/google/api/annotations.proto",
  "node_modules/@protobufs/google/api/http.proto": "third-party/google/api/http.proto",
  "packages/transcoder/proto/google/api/httpbody.proto": "third-party/google/api/httpbody.proto",
  "packages/transcoder/proto/google/api/field_behavior.proto": "third-party/google/api/field_behavior.proto",
  "packages/transcoder/proto/google/api/resource.proto": "third-party/google/api/resource.proto",
  "node_modules/.cache/protos/buf/validate/validate.proto": "third-party/buf/validate/validate.proto",
});
