/** Shows one call as it is made with other tools. */
import { type DescMethod, type Message, toJson } from "@bufbuild/protobuf";
import { type Exact, type HttpRequest, httpJson, httpRequest, operationOf, requestText, textOf } from "./http.ts";

export interface Place {
  /** Where the gateway is, without a slash at the end. */
  readonly baseUrl: string;
  /** Whether calls need a credential, for which the text has a shell variable. */
  readonly isAsking: boolean;
}

export interface Form {
  readonly name: string;
  readonly text: string;
  /** What to know before using it. */
  readonly hint?: string;
}

export function formsOf(method: DescMethod, request: Message, place: Place): readonly Form[] {
  const operation = operationOf(method, request);
  const http = operation && httpRequest(operation, method, request);
  return [
    ...(http ? httpForms(http, place) : []),
    ...rpcForms(method, request, place),
    ...(http
      ? [{ name: "TypeScript", text: typescript(method, request, http.body), hint: "With @petstore/client." }]
      : []),
  ];
}

const CREDENTIAL = '-H "Authorization: Bearer $CREDENTIAL"';

/** A curl command that prints the events of `GET /events` as they happen. */
export const eventsCurl = (url: string, isAsking: boolean): string =>
  ["curl -N", quoted(url), ...(isAsking ? [CREDENTIAL] : [])].join(" ");

function httpForms(http: HttpRequest, { baseUrl, isAsking }: Place): Form[] {
  const { host, pathname } = new URL(baseUrl);
  const prefixed = { ...http, target: pathname.replace(/\/$/, "") + http.target };
  const headers = [
    ...http.headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(isAsking ? [CREDENTIAL] : []),
  ];
  // curl sends POST by default if it has a body.
  const verb = http.verb === "GET" || (http.verb === "POST" && http.body !== undefined) ? [] : [`-X ${http.verb}`];
  const body = http.body === undefined ? [] : [`--json ${quoted(textOf(http.body))}`];
  return [
    { name: "HTTP", text: requestText(prefixed, host) },
    {
      name: "curl",
      text: ["curl", ...verb, quoted(baseUrl + http.target), ...headers, ...body].join(" "),
      ...(body.length > 0 && { hint: "--json wants curl 7.82 or newer." }),
    },
  ];
}

/** The difference of each service's port from the gateway's. */
const PORTS: Readonly<Record<string, number>> = { pet: 1, category: 2, order: 3, inventory: 4 };

function rpcForms(method: DescMethod, request: Message, { baseUrl, isAsking }: Place): Form[] {
  const rpc = `${method.parent.typeName}/${method.name}`;
  const message = toJson(method.input, request);
  const json = quoted(JSON.stringify(message));
  const { protocol, hostname, port } = new URL(baseUrl);
  const isTls = protocol === "https:";
  const own = Number(port || (isTls ? 443 : 80)) + (PORTS[/^petstore\.(\w+)\./.exec(rpc)?.[1] ?? ""] ?? 0);
  const credential = isAsking ? [CREDENTIAL] : [];
  return [
    {
      name: "gRPC",
      text: [
        "npx buf curl --protocol grpc",
        ...(isTls ? [] : ["--http2-prior-knowledge"]),
        ...credential,
        `-d ${json} ${protocol}//${hostname}:${own}/${rpc}`,
      ].join(" "),
      hint: `gRPC is spoken by the service itself, where it is on ${own} as npm start has it.`,
    },
    {
      name: "Connect",
      text: ["curl", `${baseUrl}/${rpc}`, ...credential, `--json ${json}`].join(" "),
      hint: "The console itself calls so, in binary.",
    },
  ];
}

/** The call with the client package, which takes records as HTTP has them. */
function typescript(method: DescMethod, request: Message, body: Exact | undefined): string {
  const { updateMask, etag, requestId, ...rest } = httpJson(method.input, request, []) as Readonly<
    Record<string, Exact>
  >;
  const [id = 0] = Object.values(rest);
  const ifMatch = etag === undefined ? [] : [{ ifMatch: etag }];
  const [, verb = "", what = ""] = /^([A-Z][a-z]+)(\w+)$/.exec(method.name) ?? [];
  const records = { Pet: "pets", Category: "categories", Order: "orders" }[what] ?? what.toLowerCase();
  const call = (name: string, ...given: Exact[]) => `petstore.${records}.${name}(${given.map(literal).join(", ")})`;
  switch (verb) {
    case "List":
      return `const { value: page } = await ${call("list", rest)}.pages().next();`;
    case "Create":
      return `const record = await ${call("create", body ?? {}, ...(requestId ? [{ idempotencyKey: requestId }] : []))};`;
    case "Update":
      return `const record = await ${call(updateMask === undefined ? "replace" : "update", id, body ?? {}, ...ifMatch)};`;
    case "Delete":
      return `await ${call("delete", id, ...ifMatch)};`;
    default:
      return `const record = await ${call("get", id)};`;
  }
}

function literal(value: Exact): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value === null || typeof value !== "object")
    return typeof value === "bigint" ? `${value}` : JSON.stringify(value);
  const members = Object.entries(value).map(([name, each]) => `${name}: ${literal(each)}`);
  return members.length > 0 ? `{ ${members.join(", ")} }` : "{}";
}

/** Quoted for a shell, if needed. */
const quoted = (text: string): string => (/^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
