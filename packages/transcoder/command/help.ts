export const HELP = `connect-transcoder: a gRPC or Connect service as HTTP/JSON, with OpenAPI

  npx connect-transcoder --reflect http://localhost:50051

The contract (an RPC needs a google.api.http rule, or --unbound)
  --reflect URL              asks a server for it, by grpc.reflection
  --reflect-header K:V       a header for that, such as "authorization: Bearer abc"; repeatable
  --descriptor-set FILE      reads it from what "buf build -o" or "protoc --include_imports" wrote
  --watch                    reads it again every 2 s and serves what has changed
  --check [--json]           says what is served and what is not, and why; serves nothing
  --strict                   serves nothing unless all can be served

Where the services are
  --target [SERVICE=]URL     for one service (package.Service) or all others; by default what was asked; repeatable
  --protocol NAME            grpc (the default), grpcweb or connect
  --cacert FILE              the CA of the target's certificate
  --cert FILE --key FILE     the command's own certificate towards the target

Where it is served
  --host HOST --port PORT    127.0.0.1 and 8080 by default
  --admin-host HOST --admin-port PORT   where /metrics and /readyz are: 127.0.0.1, and 100 above the port; off for none
  --tls-cert FILE --tls-key FILE   over TLS
  --cors ORIGIN              lets pages of an origin, or of all (*), call it; repeatable
  --title TEXT               of the OpenAPI document

How
  --codec NAME               proto3 (proto3 JSON, the default) or exact (int64 as numbers with all their digits)
  --omit-unpopulated         leaves out what is unpopulated in answers
  --original-names           names members as the contract does: page_size
  --enum-numbers             writes enums as numbers
  --errors FORM              status (google.rpc.Status, the default) or problem (RFC 9457)
  --ignore-unknown           ignores unknown members and parameters; by default they are refused with 400
  --unbound                  serves RPCs without an HTTP rule as POST /package.Service/Method
  --allow-header NAME        passes a header of requests on; Authorization always is; repeatable
  --grpc-metadata            Grpc-Metadata-* both ways, as grpc-gateway has it
  --max-bytes N              of a request or an answer: 4 MiB by default
  --json-depth N             100 by default
  --timeout TIME             the most that a request may take: 30s by default

  --version, --help

Traces go to OTEL_EXPORTER_OTLP_ENDPOINT, where that is set.
It serves /openapi.json, /docs and /healthz, too, and HTTP/1.1 and HTTP/2 on one port. SIGTERM drains it.
Exit codes: 0 after that; 1 if nothing can be served (with --strict: if anything can't), or the target is away at the start;
2 if the command line can't be used.
`;
