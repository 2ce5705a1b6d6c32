/** What others say that has to be looked after, and which of our protections do; docs/security.md shows it. */
import type { ProtectionName } from "./protections.ts";

/** A row of somebody else's list. */
export interface Risk {
  readonly name: string;
  readonly by: readonly ProtectionName[];
  /** What the petstore does about it, what it does not, or why the row does not apply. */
  readonly answer: string;
}

/** OWASP API Security Top 10, 2023. */
export const owasp: readonly Risk[] = [
  {
    name: "API1 Broken object level authorization",
    by: ["callers", "scopes"],
    answer:
      "Records have no owners: who may read pets may read all pets. What does belong to a caller, its idempotency keys, is bound to it. Ids are judged after permission, so a caller without it learns nothing of what exists.",
  },
  {
    name: "API2 Broken authentication",
    by: ["credentials", "guesses", "internal"],
    answer:
      "Off until `AUTH_MODE` is set, and then on at every port. [Authentication](authentication.md) says what a credential has to be.",
  },
  {
    name: "API3 Broken object property level authorization",
    by: ["input"],
    answer:
      "The contract says what a caller can write (`NewPet`) and what it is shown (`Pet`); a stored field is in neither unless the contract names it. All who may read a record see all of what it shows.",
  },
  {
    name: "API4 Unrestricted resource consumption",
    by: ["rates", "overload", "sizes", "connections", "memory", "turns", "http2", "slow", "linear"],
    answer: "Rates are off until `RATE_LIMIT` is set; the rest always holds. How much may be stored has no limit.",
  },
  {
    name: "API5 Broken function level authorization",
    by: ["scopes", "internal"],
    answer: "Deny by default. There are no administrators' functions beside the operations.",
  },
  {
    name: "API6 Unrestricted access to sensitive business flows",
    by: ["business", "rates"],
    answer:
      "A caller with `orders:write` may order all that is in stock. Who people are, and whether they are people, has to be judged where keys are given out.",
  },
  {
    name: "API7 Server side request forgery",
    by: ["issuer", "credentials"],
    answer:
      "No request names an address that a process then calls. All addresses are configuration; those that a token names (`jku`, `x5u`) are not followed.",
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
      "What can be called is what the `.proto` files say, and `/openapi.json` is made of them. A deprecated operation announces its end. `.ci/run` refuses a change that breaks the contract.",
  },
  {
    name: "API10 Unsafe consumption of APIs",
    by: ["issuer", "links", "documents"],
    answer:
      "What comes from the issuer, from other processes and from the database is bounded and judged before it is used.",
  },
];

/** "Configuring Envoy as an edge proxy", for the gateway is one. */
export const envoy: readonly Risk[] = [
  {
    name: "Restrict access to the admin endpoint",
    by: [],
    answer: "Does not apply: there is none. Health tells no more than which service is missing.",
  },
  {
    name: "overload_manager",
    by: ["overload", "memory", "connections"],
    answer:
      "What strangers' requests, answers and connections take is counted and bounded, each with a refusal beyond it.",
  },
  {
    name: "Listener buffer limits of 32 KiB",
    by: ["turns", "memory"],
    answer:
      "A connection is read in pieces of 1 KiB (HTTP/1.1) and 16 KiB (HTTP/2), in its turn; nothing is read for a client that does not read.",
  },
  {
    name: "Cluster buffer limits of 32 KiB",
    by: ["links"],
    answer: "Calls that wait for a service are bounded to 64 MiB and 10,000; beyond it 503 `OVERLOADED`.",
  },
  {
    name: "use_remote_address",
    by: ["rates", "internal"],
    answer:
      "A caller's address is that of its connection, unless `TRUST_PROXY` names the proxy. Headers for the petstore's own processes count for nothing from strangers.",
  },
  {
    name: "Connection and stream timeouts",
    by: ["slow"],
    answer: "For the first byte, the headers, the request, the answer that is not taken, and the idle connection.",
  },
  { name: "HTTP/2 maximum concurrent streams of 100", by: ["http2"], answer: "100 for strangers." },
  { name: "HTTP/2 initial stream window of 64 KiB", by: ["memory"], answer: "Node's default, 65,535 bytes." },
  {
    name: "HTTP/2 initial connection window of 1 MiB",
    by: ["memory"],
    answer: "Node's default, which is smaller: 65,535 bytes.",
  },
  {
    name: "headers_with_underscores_action",
    by: ["internal"],
    answer: "Does not apply: nothing here takes `_` and `-` in the name of a field for the same.",
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
      "Paths are not normalized: encoded letters are decoded, but other slashes or capitals are another path, and 404. Permission depends on the RPC that a path leads to, never on the path.",
  },
];
