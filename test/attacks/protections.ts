/**
 * The petstore's protections, the attacks that each was tested against, and the tests. docs/security.md shows them, and
 * `test/project/security-page.test.ts` checks that the page, this list and the tests agree.
 */

export interface Trial {
  /** What an attacker does. */
  readonly attack: string;
  readonly file: string;
  /** The title of the test, or of the group of tests, in the file. */
  readonly test: string;
}

export interface Protection {
  readonly protection: string;
  readonly trials: readonly Trial[];
}

const trial = (attack: string, file: string, test: string): Trial => ({ attack, file, test });

export const protections = {
  credentials: {
    protection: "Callers show an API key or an access token; the petstore stores only hashes and public keys",
    trials: [
      trial(
        "no credential, an invalid or an expired one, at every RPC over every protocol",
        "test/api/access-matrix.test.ts",
        "at the service",
      ),
      trial(
        "the same at every operation, and at every RPC that bypasses the gateway",
        "test/api/access-matrix.test.ts",
        "through the gateway",
      ),
      trial(
        "a token that is unsigned, or signed with HS256 by the public key",
        "packages/rpc/auth/tokens.test.ts",
        "HS256 with the issuer's public key as the secret",
      ),
      trial(
        "a token that names its own key",
        "packages/rpc/auth/tokens.test.ts",
        "a key that the token brings along itself",
      ),
      trial(
        "two credentials at once",
        "packages/rpc/server/dispatcher.authorization.test.ts",
        "two credentials at once are none, over HTTP/1.1 and HTTP/2",
      ),
      trial(
        "a key that was revoked a second ago",
        "test/api/authentication.test.ts",
        "a key that is revoked ends at every process, while they run",
      ),
      trial(
        "a stream that stays open when its credential is revoked, rotated, expired, or loses its scope",
        "gateway/credential-end.test.ts",
        "$name ends its stream, and those at the services",
      ),
      trial(
        "the same, bypassing the gateway",
        "packages/rpc/server/credential-end.test.ts",
        "$name ends its stream, and what is done for it",
      ),
    ],
  },
  invalid: {
    protection:
      "Invalid credentials of an address are few, and so are the signatures that are checked for it; valid ones pass",
    trials: [
      trial(
        "many invalid credentials",
        "gateway/auth.test.ts",
        "are 401 for an address 20 times a minute, and then 429, at both endpoints together",
      ),
      trial(
        "the same from a neighbour's address, to lock the neighbour out",
        "gateway/auth.test.ts",
        "keep out no valid API key of the same address, and no access token that was valid before",
      ),
    ],
  },
  scopes: {
    protection: "Each RPC needs the scope that its contract names; an RPC without one can't be called from outside",
    trials: [
      trial(
        "a credential with another scope, at every RPC and operation",
        "test/api/access-matrix.test.ts",
        "through the gateway",
      ),
      trial(
        "a credential with another scope, bypassing the gateway",
        "test/api/access-matrix.test.ts",
        "at the service",
      ),
      trial(
        "an RPC that names no scope",
        "packages/rpc/auth/authentication.test.ts",
        "what the contract says nothing of, nobody may call, and what is internal neither",
      ),
      trial(
        "finding out what exists without permission",
        "test/api/access-matrix.test.ts",
        "route, method and sizes go before credentials, all else behind them",
      ),
    ],
  },
  internal: {
    protection:
      "Internal RPCs accept only the secret or a certificate of the petstore's own processes, and only these can act on behalf of a caller",
    trials: [
      trial(
        "calling internal RPCs",
        "test/api/access-matrix.test.ts",
        "internal RPCs take nothing but the secret of the petstore's own processes",
      ),
      trial("naming another caller in a header", "test/api/callers.test.ts", "a stranger can't name another caller"),
      trial(
        "setting the headers of the petstore's own processes",
        "gateway/rpc-endpoint.test.ts",
        "headers that only the petstore may set are its own",
      ),
      trial(
        "the same at a service, with a guessed secret",
        "test/attacks/hostile-input.test.ts",
        "headers that only the petstore's processes may set are not believed",
      ),
    ],
  },
  callers: {
    protection: "A caller's data is out of reach of other callers",
    trials: [
      trial(
        "the idempotency key of somebody else",
        "test/api/authentication.test.ts",
        "an idempotency key belongs to its caller, at every endpoint and after its credential was rotated",
      ),
    ],
  },
  rates: {
    protection: "Rate limits for each caller, counted for HTTP and RPC together",
    trials: [
      trial(
        "more requests than allowed",
        "gateway/limits-rates.test.ts",
        "every answer says what remains; beyond the rate it is 429, and no service hears of it",
      ),
      trial(
        "the same by another protocol",
        "gateway/limits-rates.test.ts",
        "counts together with HTTP, and is refused in its own form",
      ),
      trial(
        "another address in X-Forwarded-For",
        "packages/rpc/http/hosts.test.ts",
        "without proxies it is the other end of the connection, whatever the headers say",
      ),
      trial(
        "many callers behind one proxy, at the gateway and at a service",
        "test/attacks/one-proxy.test.ts",
        "counts the streams of each of its callers",
      ),
      trial(
        "more callers than can be remembered",
        "gateway/rates.test.ts",
        "of too many callers, those that were silent for longest are forgotten",
      ),
    ],
  },
  overload: {
    protection: "A process admits what it can finish in time, and refuses the rest early, lists first",
    trials: [
      trial(
        "ten times the load that it can handle",
        "packages/rpc/admission/simulation.test.ts",
        "at ten times what it can bear it answers as much, and nobody waits for three times as long",
      ),
      trial(
        "endless requests for lists, while others place orders",
        "packages/rpc/admission/simulation.test.ts",
        "orders are placed and completed as if nothing were, while lists come at ten times the peak",
      ),
      trial(
        "requests with no time left, to make the requests of others count as slow",
        "packages/rpc/admission/admission.test.ts",
        "what callers leave a call says nothing of what it takes",
      ),
      trial(
        "one caller that asks for everything",
        "gateway/limits-overload.test.ts",
        "who asks for everything is refused, and keeps nobody else out",
      ),
    ],
  },
  tls: {
    protection:
      "TLS 1.2 or newer if a certificate is configured, and certificates between the petstore's own processes",
    trials: [
      trial(
        "an older version",
        "packages/rpc/tls/certificates.test.ts",
        "takes TLS 1.2 and 1.3, and nothing older, even where Node would",
      ),
      trial(
        "handshakes that stall, break off or are no handshakes",
        "packages/rpc/tls/certificates.test.ts",
        "those who don't get that far",
      ),
      trial(
        "hundreds of handshakes that are begun and left",
        "test/attacks/tls-floods.test.ts",
        "handshakes that are begun and left",
      ),
      trial(
        "a client without a certificate of the petstore's",
        "packages/rpc/tls/certificates.test.ts",
        "whoever shows none is a stranger, and nothing is said of it",
      ),
    ],
  },
  sizes: {
    protection: "Bodies, messages, headers, targets, nesting and every field have limits",
    trials: [
      trial(
        "a body that is too large, too deep or compressed",
        "test/attacks/hostile-input.test.ts",
        "very deep nesting",
      ),
      trial(
        "a message that decompresses to 64 MiB",
        "test/attacks/hostile-input.test.ts",
        "gRPC frames, at the service",
      ),
      trial("a frame that promises 4 GiB", "test/attacks/hostile-input.test.ts", "that promise 4 GiB"),
      trial("targets and headers that are too long", "gateway/content.test.ts", "413, 414 and 431"),
      trial(
        "a field of the contract without a limit",
        "test/project/request-sizes.test.ts",
        "bounds every field of %s",
      ),
      trial("an answer that repeats what was sent", "packages/rpc/server/error-size.test.ts", "compressed: %s"),
    ],
  },
  connections: {
    protection: "Connections are limited, in all and for each address",
    trials: [
      trial(
        "thousands of connections",
        "packages/rpc/http/connections.test.ts",
        "is bounded in all, whatever the addresses, and the one that has rested longest gives way",
      ),
      trial(
        "all of them from one address",
        "packages/rpc/http/connections.test.ts",
        "is bounded for each address: one leaves the others alone",
      ),
      trial(
        "more connections than there may be, all of them idle",
        "test/attacks/idle-connections.test.ts",
        "more idle connections than allowed, at %s",
      ),
      trial("all addresses of an IPv6 network", "packages/rpc/http/connections.test.ts", "of IPv6 counts by network"),
    ],
  },
  proxy: {
    protection:
      "For the open internet, [nginx](../examples/proxy/README.md) limits what one address may take before the gateway sees it",
    trials: [
      trial(
        "thousands of connections, slow and endless requests, pipelines, rapid resets and unread answers, from one address",
        "test/attacks/behind-proxy.test.ts",
        "from one address",
      ),
      trial(
        "naming another address in X-Forwarded-For or Forwarded",
        "test/examples/proxy.test.ts",
        "callers are told apart by their addresses, whatever they say of themselves",
      ),
    ],
  },
  streams: {
    protection:
      "Streams have limits of their own, in all and for each caller, and do not count towards the limits of other requests",
    trials: [
      trial(
        "watches of health from one address, to leave none for others",
        "packages/rpc/server/stream-calls.open.test.ts",
        "of what watches health one network has a quarter, and its streams of other kinds are counted by themselves",
      ),
      trial(
        "an endless number of streams",
        "packages/rpc/server/stream-calls.open.test.ts",
        "one stream too many is refused with its reason, until another has ended",
      ),
      trial(
        "the same through the gateway",
        "gateway/rpc-endpoint-streams.test.ts",
        "a caller has no more streams than it may, until one has ended, and others have theirs",
      ),
      trial(
        "so many streams that nothing is left for short requests",
        "packages/rpc/server/stream-calls.open.test.ts",
        "streams leave the memory for requests, and the places of connections, to others",
      ),
      trial(
        "readers that stop reading and go away",
        "packages/rpc/server/long-streams.test.ts",
        "what was kept for readers that have gone is free for others",
      ),
      trial(
        "hundreds of readers that stop reading while many records change",
        "test/attacks/unread-streams.test.ts",
        "streams that nobody reads",
      ),
      trial(
        "readers that disappear without closing the connection",
        "packages/rpc/server/long-streams.test.ts",
        "a client of HTTP/2 that does not say any more that it is there is given up, with all that was done for it",
      ),
    ],
  },
  memory: {
    protection: "Open requests and unread answers have a bounded share of memory",
    trials: [
      trial(
        "requests that never end",
        "packages/rpc/http/request-budget.test.ts",
        "beyond the budget they are refused with 503 by either protocol, and served again when the others have gone",
      ),
      trial(
        "answers that are never read",
        "packages/rpc/http/unread.test.ts",
        "behind windows that are never opened are bounded in all",
      ),
      trial(
        "the same against the whole petstore, with its memory measured",
        "test/attacks/unread-answers.test.ts",
        "answers that nobody reads, at %s",
      ),
      trial(
        "thousands of requests and messages that are begun, on hundreds of connections, with its memory measured",
        "test/attacks/unfinished-requests.test.ts",
        "requests without end",
      ),
      trial(
        "messages of 1 MiB that are announced and not sent, or lack a byte",
        "test/attacks/unfinished-requests.test.ts",
        "messages of 1 MiB",
      ),
      trial(
        "messages that are much larger than their compressed bytes",
        "test/attacks/unfinished-requests.test.ts",
        "compressed messages",
      ),
      trial(
        "answers that are asked for, reset and never read",
        "packages/rpc/http/unread.test.ts",
        "are bounded in all, though their requests are reset",
      ),
      trial(
        "many pipelined requests",
        "packages/rpc/http/floods.test.ts",
        "more pipelined HTTP/1.1 requests than may wait end the connection",
      ),
      trial(
        "a request hidden behind one that asks for an upgrade",
        "packages/rpc/http/one-port.test.ts",
        "serves nothing behind a request with %j, for Node drops a part of it",
      ),
    ],
  },
  http2: {
    protection: "Floods of HTTP/2 frames end the connection",
    trials: [
      trial("rapid reset (CVE-2023-44487)", "packages/rpc/http/floods.test.ts", "rapid reset"),
      trial(
        "endless CONTINUATION frames (CVE-2024-27316)",
        "packages/rpc/http/floods.test.ts",
        "CONTINUATION closes the connection",
      ),
      trial(
        "rapid reset and pipelines on many connections, with the memory of the petstore measured",
        "test/attacks/frame-floods.test.ts",
        "rapid reset, a moment after the requests",
      ),
      trial(
        "the same with requests that have bodies",
        "test/attacks/frame-floods.test.ts",
        "rapid reset of requests, a moment after their bodies",
      ),
      trial(
        "requests with bodies that come in tiny pieces before it is their turn",
        "packages/rpc/http/requests.test.ts",
        "one that comes in many pieces does not wait until it is there",
      ),
      trial("other frames without end", "test/attacks/frame-floods.test.ts", "frames without end: %s"),
      trial(
        "more streams than allowed",
        "packages/rpc/http/floods.test.ts",
        "more requests at a time than allowed are refused",
      ),
    ],
  },
  slow: {
    protection: "Slow or silent connections and requests are ended in time",
    trials: [
      trial("headers and bodies that never end", "test/attacks/hostile-input.test.ts", "requests that don't arrive"),
      trial(
        "the same at a service",
        "packages/rpc/http/one-port.test.ts",
        "an HTTP/2 request that never ends is answered 408, its neighbours live",
      ),
      trial(
        "an answer that the client does not read",
        "packages/rpc/http/unread.test.ts",
        "by a client that doesn't read are given up in time: %s",
      ),
    ],
  },
  broken: {
    protection: "No broken-off request ends a process",
    trials: [
      trial(
        "breaking off after every byte",
        "test/attacks/broken-connections.test.ts",
        "broken off after every byte, %i requests in a row",
      ),
      trial(
        "a reset behind an Expect: 100-continue, in one packet",
        "packages/rpc/http/floods.test.ts",
        "of a request that expects 100-continue ends no process",
      ),
      trial(
        "breaking off while answers come",
        "test/attacks/broken-connections.test.ts",
        "broken off while answers come",
      ),
    ],
  },
  linear: {
    protection: "Parsing takes time in proportion to the text",
    trials: [
      trial(
        "regular expressions that backtrack",
        "test/attacks/linear-time.test.ts",
        "none of the sources' backtracks for more than linear time",
      ),
      trial(
        "long texts for every parser",
        "test/attacks/linear-time.test.ts",
        "%s: the steps grow no faster than the text",
      ),
    ],
  },
  input: {
    protection: "Input is read strictly: one meaning for each text, no coercion, only the contract's members",
    trials: [
      trial(
        "__proto__, database operators, numbers as strings",
        "test/attacks/hostile-input.test.ts",
        "__proto__ and its like pollute nothing",
      ),
      trial(
        "quotes, path traversal and line breaks in targets and queries",
        "test/attacks/hostile-input.test.ts",
        "injection",
      ),
      trial(
        "a second request within the first (request smuggling)",
        "test/attacks/hostile-input.test.ts",
        "a second request within the first is not answered",
      ),
      trial(
        "a body in a transfer coding that is not read",
        "gateway/content.test.ts",
        "a body in the transfer coding %s is not read as if it had none",
      ),
      trial("the same at a service", "packages/rpc/http/refusals.test.ts", "a body in the transfer coding %s is %i"),
      trial("two spellings of a path", "gateway/http.test.ts", "404 for %s, whatever the method"),
      trial(
        "members that belong only to answers",
        "test/api/cases/bodies.ts",
        "strict: what only answers have is not looked at",
      ),
    ],
  },
  rebinding: {
    protection: "On loopback, processes accept only loopback names as Host; health, which tells little, answers any",
    trials: [
      trial(
        "a page that points its own name at 127.0.0.1 (DNS rebinding), at every port",
        "test/attacks/dns-rebinding.test.ts",
        "%s answers to the names of loopback alone",
      ),
      trial(
        "the same at every endpoint, and names that look alike",
        "gateway/allowed-hosts.test.ts",
        "is refused by another name, before anything is done",
      ),
      trial(
        "such a name in the target of the request, beside a Host that is allowed",
        "test/attacks/dns-rebinding.test.ts",
        "%s goes by the host in the target, whatever Host says",
      ),
      trial(
        "the same where a container's port is published on loopback",
        "test/project/containers.test.ts",
        "%s understands its whole environment",
      ),
    ],
  },
  browsers: {
    protection:
      "Pages of other origins may call only if they are configured; answers have the right content type; no cookies",
    trials: [
      trial("a page of another origin", "gateway/cors.test.ts", "may not call from others"),
      trial(
        "an answer that is interpreted as a script, and cookies",
        "gateway/allowed-hosts.test.ts",
        "is answered as what it says it is, without a cookie",
      ),
      trial(
        "a script in the documentation page",
        "gateway/docs.test.ts",
        "the browser is told to load nothing, and to run nothing",
      ),
    ],
  },
  console: {
    protection:
      "The console runs only files from its own address, shows data as text, and keeps the credential in its tab until somebody signs out",
    trials: [
      trial("a record whose name is a script", "test/console/console.test.ts", "a name that looks like HTML is text"),
      trial(
        "a script or a style from elsewhere, a frame around the page, a form that sends elsewhere",
        "gateway/console.test.ts",
        "the browser is told to run and load nothing from elsewhere, and nothing that stands in the page",
      ),
      trial(
        "the page under a rebound name, its files interpreted as another type, cookies",
        "gateway/allowed-hosts.test.ts",
        "a file of the console",
      ),
      trial(
        "looking for the credential in the page, its address, its requests, cookies, storage that outlives the tab, and logs",
        "test/console/sign-in.test.ts",
        "asks who calls, keeps the key for the tab alone, and shows it nowhere",
      ),
      trial(
        "signing in after another user, and looking for what that user saw and wrote",
        "test/console/sign-in.test.ts",
        "what a caller was shown, and had begun, is gone with the caller",
      ),
      trial(
        "names in a request that lead to other files",
        "gateway/console.test.ts",
        "behind a prefix the page is found without its slash, and there is none elsewhere",
      ),
    ],
  },
  errors: {
    protection: "Errors reveal nothing of the implementation",
    trials: [
      trial(
        "a fault in a handler",
        "gateway/http.test.ts",
        "500 tells nothing but the request's identifier, the log tells the rest",
      ),
      trial(
        "an answer of a service that makes no sense",
        "processes/errors.test.ts",
        "an answer that makes no sense: 502 after a read; after a write nobody knows, so 503",
      ),
    ],
  },
  secrets: {
    protection: "Secrets appear in no log, answer, argument list or file, in any form",
    trials: [
      trial(
        "credentials in every place of a request, refused in every way",
        "test/attacks/secrets.test.ts",
        "wrote none of it: in logs, answers, argument lists, data",
      ),
      trial("wrong settings", "test/attacks/secrets.test.ts", "%s is told without it"),
      trial(
        "a certificate whose key is replaced by a broken one",
        "test/attacks/secrets.test.ts",
        "a port with TLS tells nothing of its key",
      ),
      trial("a crash with all secrets in its error", "test/attacks/secrets.test.ts", "fails and crashes"),
      trial(
        "control characters that forge lines of a log",
        "packages/runtime/log.process.test.ts",
        "reach no log as they are, wherever they stand",
      ),
    ],
  },
  start: {
    protection:
      "Unsafe configurations don't start: no process listens beyond loopback without requiring credentials, unless it is explicitly told to",
    trials: [
      trial(
        "an operator's mistake",
        "gateway/config.test.ts",
        "listening beyond loopback without credentials has to be asked for in so many words",
      ),
      trial(
        "an inherited socket that is bound to all addresses",
        "gateway/main.process.test.ts",
        "LISTEN_FDS: a socket that other machines reach is refused where nobody is asked who calls",
      ),
    ],
  },
  issuer: {
    protection: "Requests to the issuer of tokens are rare, small, and only to the configured address",
    trials: [
      trial(
        "tokens with invented keys",
        "packages/rpc/auth/tokens.test.ts",
        "tokens with keys that are made up make the issuer be asked once a minute, however many come",
      ),
      trial(
        "a key that the issuer withdrew while no token came for long",
        "packages/rpc/auth/tokens.test.ts",
        "after a long rest nobody is let in by keys that nobody has asked for since",
      ),
    ],
  },
  links: {
    protection: "Calls between processes are bounded, and their answers are validated like external input",
    trials: [trial("a process that breaks the protocol of a link", "packages/rpc/link/lies.test.ts", "")],
  },
  documents: {
    protection: "A stored document that can't be read harms only itself",
    trials: [
      trial(
        "a document that was damaged or forged in the database",
        "test/faults/corrupt-documents.test.ts",
        "lists go on without it, page by page and in both orders",
      ),
    ],
  },
  business: {
    protection: "Nothing is sold twice, and one pet has at most 1,000 open orders",
    trials: [trial("endless orders", "test/api/error-catalogue.test.ts", "TOO_MANY_OPEN_ORDERS")],
  },
  inspector: {
    protection: "The processes that `npm start` and the containers start can't be made to open Node's inspector",
    trials: [
      trial(
        "a signal (SIGUSR1), and then code by the inspector's port, as another user of the machine",
        "launcher/launch.process.test.ts",
        "SIGUSR1 opens no inspector, neither in the processes nor in the launcher as npm starts it",
      ),
    ],
  },
  admin: {
    protection: "The admin port tells other machines only how the process is, and web pages nothing",
    trials: [
      trial(
        "settings, profiles or a change, asked for by another machine",
        "processes/admin.test.ts",
        "other machines may ask how it is, look at nothing inside, and change nothing",
      ),
      trial(
        "the same by a web page, also by one that has its own name point at this machine, or loads it as an image",
        "processes/admin.test.ts",
        "a look inside and a change %s are refused, and nothing is changed",
      ),
      trial(
        "a secret among the settings",
        "packages/runtime/settings.test.ts",
        "what is set says where, and a secret nothing else",
      ),
      trial(
        "what is stored, asked for by another user of the machine",
        "services/stored.test.ts",
        "who shows %s is refused",
      ),
      trial(
        "a copy of what is stored, begun by another user of the machine",
        "services/copies.test.ts",
        "nobody begins a copy who can't prove that they may read the files",
      ),
      trial(
        "profile upon profile",
        "processes/admin/looks.profiles.test.ts",
        "one is taken at a time, and after it another",
      ),
    ],
  },
  metrics: {
    protection: "What callers send never becomes a label of a metric",
    trials: [
      trial(
        "thousands of random paths, hosts and methods",
        "gateway/requests.test.ts",
        "any paths, hosts and methods add no series",
      ),
    ],
  },
  traces: {
    protection:
      "Callers name their trace, but don't decide what is recorded, unless a proxy in `TRUST_PROXY` passes on their `traceparent`",
    trials: [
      trial("a flag that asks for it", "packages/trace/sdk.test.ts", "%s: %j of %d is recorded: %s"),
      trial(
        "the same by way of our nginx, which the petstore trusts",
        "test/examples/proxy.test.ts",
        "a caller's trace ends at the proxy",
      ),
      trial(
        "a trace id that any process would record",
        "packages/trace/sdk.test.ts",
        "a part of the traces is recorded, whatever id a caller has chosen",
      ),
      trial("60,000 characters of tracestate", "packages/trace/context.test.ts", "costs no more than its length"),
    ],
  },
  containers: {
    protection: "Containers and their users in MongoDB have only the rights that they need",
    trials: [
      trial("a compromised container", "test/project/containers.test.ts", "%s can do no more than it needs to"),
      trial("its secrets", "test/project/containers.test.ts", "each can read the secrets that it needs and no others"),
      trial(
        "its user in MongoDB",
        "scripts/mongodb-users.process.test.ts",
        "%s can read and write its own database and no other",
      ),
    ],
  },
} as const satisfies Record<string, Protection>;

export type ProtectionName = keyof typeof protections;
