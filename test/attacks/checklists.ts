/** Published security checklists, and which of our protections answer each row; docs/security.md shows them. */
import type { ProtectionName } from "./protections.ts";

/** A row of a checklist. */
export interface Risk {
  readonly name: string;
  readonly by: readonly ProtectionName[];
  /** What the petstore does about it, what it does not do, or why the row does not apply. */
  readonly answer: string;
}

/** OWASP API Security Top 10, 2023. */
export const owasp: readonly Risk[] = [
  {
    name: "API1 Broken object level authorization",
    by: ["callers", "scopes"],
    answer:
      "Records have no owners: a caller that may read pets may read all pets. The idempotency keys of a caller do belong to it, and are bound to it. Permission is checked before ids, so a caller without it learns nothing of what exists.",
  },
  {
    name: "API2 Broken authentication",
    by: ["credentials", "invalid", "internal"],
    answer:
      "Off until `AUTH_MODE` is set, and then on at every port. [Authentication](authentication.md) says what a credential has to be.",
  },
  {
    name: "API3 Broken object property level authorization",
    by: ["input"],
    answer:
      "The contract says what a caller can write (`NewPet`) and what it can read (`Pet`); a stored field is in neither unless the contract names it. Every caller that may read a record sees all of these fields.",
  },
  {
    name: "API4 Unrestricted resource consumption",
    by: ["rates", "overload", "sizes", "connections", "memory", "http2", "slow", "linear"],
    answer:
      "Rates are off until `RATE_LIMIT` is set; the other limits always hold. How much may be stored has no limit.",
  },
  {
    name: "API5 Broken function level authorization",
    by: ["scopes", "internal", "admin"],
    answer: "Deny by default. There are no administrative functions among the operations.",
  },
  {
    name: "API6 Unrestricted access to sensitive business flows",
    by: ["business", "rates"],
    answer:
      "A caller with `orders:write` may order all that is in stock. Whether callers are people, and which people, has to be checked where keys are issued.",
  },
  {
    name: "API7 Server side request forgery",
    by: ["issuer", "credentials"],
    answer:
      "No request can make a process call an address that it names. All addresses are configuration; addresses in a token (`jku`, `x5u`) are not followed.",
  },
  {
    name: "API8 Security misconfiguration",
    by: ["start", "tls", "rebinding", "browsers", "console", "errors", "secrets", "containers"],
    answer: "The defaults are safe on one machine, and a wrong value is refused at the start.",
  },
  {
    name: "API9 Improper inventory management",
    by: ["scopes"],
    answer:
      "The `.proto` files list everything that can be called, and `/openapi.json` is generated from them. A deprecated operation announces its end. `.ci/run` refuses a change that breaks the contract.",
  },
  {
    name: "API10 Unsafe consumption of APIs",
    by: ["issuer", "links", "documents"],
    answer:
      "Data from the issuer, from other processes and from the database is bounded and validated before it is used.",
  },
];

/** "Configuring Envoy as an edge proxy", since the gateway is an edge proxy. */
export const envoy: readonly Risk[] = [
  {
    name: "Restrict access to the admin endpoint",
    by: ["admin"],
    answer:
      "It is on loopback unless `ADMIN_HOST` says otherwise. Any user of the machine can ask it. Health reveals only which service is missing.",
  },
  {
    name: "overload_manager",
    by: ["overload", "memory", "connections"],
    answer:
      "The resources of external requests, answers and connections are counted and bounded; what exceeds a bound is refused.",
  },
  {
    name: "Listener buffer limits of 32 KiB",
    by: ["memory"],
    answer:
      "Node reads up to 64 KiB at a time, and of a body no more than 64 KiB before it is wanted. Bodies are put together as they come, and answers that nobody reads are bounded in all.",
  },
  {
    name: "Cluster buffer limits of 32 KiB",
    by: ["links"],
    answer: "Calls that wait for a service are limited to 64 MiB and 10,000; further calls get 503 `OVERLOADED`.",
  },
  {
    name: "use_remote_address",
    by: ["rates", "internal"],
    answer:
      "A caller's address is that of its connection, unless `TRUST_PROXY` names the proxy. The headers of the petstore's own processes are ignored in external requests.",
  },
  {
    name: "Connection and stream timeouts",
    by: ["slow"],
    answer: "For the first byte, the headers, the request, the unread answer, and the idle connection.",
  },
  { name: "HTTP/2 maximum concurrent streams of 100", by: ["http2"], answer: "100 for external callers." },
  { name: "HTTP/2 initial stream window of 64 KiB", by: ["memory"], answer: "Node's default, 65,535 bytes." },
  {
    name: "HTTP/2 initial connection window of 1 MiB",
    by: ["memory"],
    answer: "Node's default, which is smaller: 65,535 bytes.",
  },
  {
    name: "headers_with_underscores_action",
    by: ["internal"],
    answer: "Does not apply: nothing here treats `_` and `-` in the name of a field as the same.",
  },
  {
    name: "Listener connection limits, global connection limits",
    by: ["connections"],
    answer: "`MAX_CONNECTIONS`, `MAX_CONNECTIONS_PER_ADDRESS`.",
  },
  {
    name: "normalize_path, merge_slashes, path_with_escaped_slashes_action",
    by: ["input", "scopes"],
    answer:
      "Paths are not normalized: encoded letters are decoded, but other slashes or capitals make another path, and 404. Permission depends on the RPC that a path leads to, never on the path.",
  },
];
