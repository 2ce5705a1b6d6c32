/** Envoy's settings: its transcoder, which answers as grpc-gateway does by default, and one worker for each core. */
const TYPES = "type.googleapis.com/envoy.extensions";

const addressOf = (port: number) => ({ socket_address: { address: "127.0.0.1", port_value: port } });

export const envoySettings = (port: number, servicePort: number, descriptorSet: string) => ({
  static_resources: {
    listeners: [
      {
        address: addressOf(port),
        filter_chains: [{ filters: [{ name: "http", typed_config: connectionManager(descriptorSet) }] }],
      },
    ],
    clusters: [
      {
        name: "service",
        type: "STATIC",
        load_assignment: {
          cluster_name: "service",
          endpoints: [{ lb_endpoints: [{ endpoint: { address: addressOf(servicePort) } }] }],
        },
        typed_extension_protocol_options: {
          "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
            explicit_http_config: { http2_protocol_options: {} },
          },
        },
      },
    ],
  },
});

const connectionManager = (descriptorSet: string) => ({
  "@type": `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
  stat_prefix: "http",
  route_config: {
    virtual_hosts: [
      { name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "service" } }] },
    ],
  },
  http_filters: [
    {
      name: "transcoder",
      typed_config: {
        "@type": `${TYPES}.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder`,
        proto_descriptor: descriptorSet,
        services: ["bench.shelves.v1.Shelves"],
        print_options: { always_print_primitive_fields: true },
      },
    },
    { name: "router", typed_config: { "@type": `${TYPES}.filters.http.router.v3.Router` } },
  ],
});
