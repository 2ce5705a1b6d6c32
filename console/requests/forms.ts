/** Shows one call as it is made with other tools. */
import { type DescField, type DescMethod, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { isReflectList, isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { httpRequest, operationOf, requestText } from "./http.ts";
import { textOf } from "./json.ts";

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
  return [...httpForms(method, request, place), ...rpcForms(method, request, place)];
}

const CREDENTIAL = '-H "Authorization: Bearer $CREDENTIAL"';

/** A curl command that prints the events of `GET /events` as they happen. */
export const eventsCurl = (url: string, isAsking: boolean): string =>
  ["curl -N", quoted(url), ...(isAsking ? [CREDENTIAL] : [])].join(" ");

function httpForms(method: DescMethod, request: Message, { baseUrl, isAsking }: Place): Form[] {
  const operation = operationOf(method, request);
  if (!operation) return [];
  const http = httpRequest(operation, method, request);
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
  const json = quoted(spaced(message));
  const { protocol, hostname, port } = new URL(baseUrl);
  const isTls = protocol === "https:";
  const own = Number(port || (isTls ? 443 : 80)) + (PORTS[/^petstore\.(\w+)\./.exec(rpc)?.[1] ?? ""] ?? 0);
  const address = `${hostname}:${own}`;
  const credential = isAsking ? [CREDENTIAL] : [];
  const atService = `gRPC is spoken by the service itself, where it is on ${own} as npm start has it.`;
  return [
    {
      name: "gRPC",
      text: [
        "npx buf curl --protocol grpc",
        ...(isTls ? [] : ["--http2-prior-knowledge"]),
        ...credential,
        `-d ${json} ${protocol}//${address}/${rpc}`,
      ].join(" "),
      hint: atService,
    },
    {
      name: "grpcurl",
      text: ["grpcurl", ...(isTls ? [] : ["-plaintext"]), ...credential, `-d ${json} ${address} ${rpc}`].join(" "),
      hint: atService,
    },
    {
      name: "Connect",
      text: ["curl", `${baseUrl}/${rpc}`, ...credential, `--json ${json}`].join(" "),
      hint: "This is how the console itself calls.",
    },
    { name: "TypeScript", text: typescript(method, request), hint: "With @petstore/client." },
  ];
}

/** The call with the client package. */
function typescript(method: DescMethod, request: Message): string {
  const service = method.parent.name.replace(/Service$/, "");
  const name = { Pet: "pets", Category: "categories", Order: "orders", Inventory: "inventory" }[service] ?? service;
  const init = literal(reflect(method.input, request));
  return `const answer = await petstore.${name}.${method.localName}(${init});`;
}

/** A message as an object literal; unset fields are left out. */
function literal(message: ReflectMessage): string {
  const members = message.fields
    .filter((field) => message.isSet(field))
    .map((field) => {
      const value = message.get(field);
      const written = isReflectList(value)
        ? `[${[...value].map((each) => literalOf(field, each)).join(", ")}]`
        : literalOf(field, value);
      return `${field.localName}: ${written}`;
    });
  return members.length > 0 ? `{ ${members.join(", ")} }` : "{}";
}

/** In TypeScript 64-bit integers are bigint, and enum values have names. */
function literalOf({ enum: desc }: DescField, value: unknown): string {
  if (isReflectMessage(value)) return literal(value);
  if (typeof value === "bigint") return `${value}n`;
  const named = desc?.values.find(({ number }) => number === value);
  return named ? `${desc?.name}.${named.localName}` : JSON.stringify(value);
}

const spaced = (value: JsonValue): string => textOf(value as never);

/** Quoted for a shell, if needed. */
const quoted = (text: string): string => (/^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
