/** Odd HTTP/1.1 requests to the gateway: to every operation of the contract, and some that are hardly requests. */
import { type Operation, operationsOf } from "connect-transcoder";
import fc from "fast-check";
import { httpServices } from "../../../gateway/services.ts";
import { cutInto, type End, exchange } from "../connection.ts";
import { type HttpAnswer, readAnswers } from "../http1-answers.ts";
import { judgeHttp, leavesInDoubt } from "../judge.ts";
import { type Json, jsonBytes, jsonOf } from "../messages.ts";
import type { Credentials, Subject } from "../subject.ts";
import type { RemoteTarget, Sent } from "../target.ts";
import { bytes, bytesOf, oddField, type Text } from "../texts.ts";

export interface HttpRequest {
  readonly verb: Text;
  readonly target: Text;
  readonly version: Text;
  readonly headers: readonly (readonly [name: Text, value: Text])[];
  /** The body, sent with its Content-Length, in chunks, or with neither. */
  readonly body?: { readonly framing: "length" | "chunked" | "none"; readonly content: Json };
}

export interface HttpCase {
  /** Sent one after the other, without waiting for answers (pipelined). */
  readonly requests: readonly HttpRequest[];
  /** Bytes that replace others at any place. The place is taken modulo the length of the whole. */
  readonly damage?: readonly { readonly at: number; readonly bytes: Text }[];
  /** Where the bytes are cut off, in thousandths of their length. */
  readonly cut?: number;
  readonly packets?: number;
  readonly end?: End;
}

const CRLF = Buffer.from("\r\n");

function headOf({ verb, target, version, headers }: HttpRequest, credentials: Credentials): Buffer {
  const field = (text: Text) => fillIn(bytesOf(text, "latin1"), credentials);
  const lines = headers.flatMap(([name, value]) => [field(name), Buffer.from(": "), field(value), CRLF]);
  const line = [field(verb), Buffer.from(" "), field(target), Buffer.from(" "), field(version), CRLF];
  return Buffer.concat([...line, ...lines]);
}

/** Puts credentials in place of their names: they differ in each run, so no case contains them. */
function fillIn(text: Buffer, { key, token, secret }: Credentials): Buffer {
  if (!text.includes("{")) return text;
  const filled = text.toString("latin1").replaceAll("{key}", key).replaceAll("{token}", token);
  return Buffer.from(filled.replaceAll("{secret}", secret), "latin1");
}

function bytesOfRequest(request: HttpRequest, credentials: Credentials): Buffer {
  const head = headOf(request, credentials);
  if (!request.body) return Buffer.concat([head, CRLF]);
  const content = jsonBytes(request.body.content);
  const { framing } = request.body;
  if (framing === "none") return Buffer.concat([head, CRLF, content]);
  if (framing === "length")
    return Buffer.concat([head, Buffer.from(`content-length: ${content.length}\r\n\r\n`), content]);
  const chunks = cutInto(3, content).flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, CRLF]);
  return Buffer.concat([head, Buffer.from("transfer-encoding: chunked\r\n\r\n"), ...chunks, Buffer.from("0\r\n\r\n")]);
}

export function bytesOfCase({ requests, damage = [], cut }: HttpCase, credentials: Credentials): Buffer {
  const whole = Buffer.concat(requests.map((request) => bytesOfRequest(request, credentials)));
  for (const { at, bytes: some } of damage) bytesOf(some, "latin1").copy(whole, at % Math.max(1, whole.length));
  return cut === undefined ? whole : whole.subarray(0, Math.ceil((whole.length * cut) / 1000));
}

async function send(one: HttpCase, { port, credentials }: Subject): Promise<Sent> {
  const all = bytesOfCase(one, credentials);
  const mayStream = all.includes("/events");
  const parts = cutInto(one.packets ?? 1, all);
  const exchanged = await exchange(port("gateway"), parts, one.end ?? "FIN", mayStream ? STREAM_MS : undefined);
  const { received } = exchanged;
  // Node's server takes a caller that has ended its side for gone, and breaks off its stream.
  const isCut = exchanged.isCut || mayStream;
  const verbs = one.requests.map(({ verb }) => bytesOf(verb, "latin1").toString("latin1"));
  const answers = readAnswers(received, verbs, isCut);
  for (const answer of answers) judgeHttp(answer, "gateway", all);
  // Nothing after an unreadable request is read.
  const isAnswered =
    !isCut &&
    !answers.some(({ status }) => leavesInDoubt(status)) &&
    (answers.length >= one.requests.length || answers.at(-1)?.headers.get("connection") === "close");
  return {
    to: "gateway",
    bytes: all.length,
    isAnswered,
    isRefused: isAnswered && answers.length > 0 && answers.every(isRefusal),
    writes: verbs.some((verb) => !/^(GET|HEAD|OPTIONS)$/.test(verb)),
  };
}

/** A stream is ended here after so long. Time is not judged otherwise. */
const STREAM_MS = 1000;

const isRefusal = ({ status }: HttpAnswer): boolean => status >= 400 && status < 500;

const operations = httpServices.flatMap(operationsOf);
const among = (...texts: Text[]): fc.Arbitrary<Text> => fc.constantFrom(...texts);
const mostly = (usual: fc.Arbitrary<Text>, weight = 6): fc.Arbitrary<Text> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: oddField });

const id = mostly(among("1", "2", "3", "8", "999"), 3);

function targetOf({ template, query }: Operation): fc.Arbitrary<Text> {
  const path = template.segments.flatMap((segment) => [
    fc.constant<Text>("/"),
    "literal" in segment ? fc.constant<Text>(segment.literal) : id,
  ]);
  const value = mostly(among("1", "2", "id", "-id", "available", "true", "100", "1,2,3", "pet,order", "W10"), 2);
  const name = mostly(among("limit", ...query.map(({ jsonName }) => jsonName)), 12);
  const parameter = fc.tuple(name, fc.constant<Text>("="), value, fc.constant<Text>("&"));
  const parameters = fc.array(parameter, { maxLength: 4 });
  return fc.oneof(
    { weight: 3, arbitrary: fc.tuple(...path) },
    { weight: 3, arbitrary: fc.tuple(...path, fc.constant<Text>("?"), parameters) },
    { weight: 1, arbitrary: fc.tuple(...path, oddField) },
  );
}

/** Headers that some code reads, with their usual values. */
const KNOWN: readonly (readonly [name: string, ...values: string[]])[] = [
  ["x-api-key", "{key}"],
  ["authorization", "Bearer {token}", "Bearer {key}", "bearer x.y.z", "Basic YTpi", "Bearer eyJhbGciOiJub25lIn0.e30."],
  [
    "accept",
    "application/json",
    "*/*",
    "application/problem+json",
    "text/html;q=0.5, */*;q=0.1",
    "application/json;q=0",
    "text/event-stream",
    "application/x-ndjson",
  ],
  [
    "content-type",
    "application/merge-patch+json",
    "application/json; charset=utf-8",
    "text/plain",
    'application/json;a="b"',
  ],
  ["content-encoding", "identity", "gzip"],
  ["idempotency-key", "tuesday", "wednesday"],
  ["if-match", '"1"', "*", 'W/"1"', '"1", "2"'],
  ["if-none-match", '"1"', "*", '"a", W/"b"'],
  ["last-event-id", "W10", "W1sicGV0IiwiIl1d"],
  ["prefer", "handling=strict", "handling=lenient; foo", 'handling="strict"'],
  ["x-server-timeout", "1", "0.5", "10", "1e1", "9".repeat(40)],
  ["x-request-id", "abc", "a b"],
  ["expect", "100-continue", "tea"],
  ["connection", "close", "keep-alive", "upgrade", "content-length"],
  ["upgrade", "websocket", "h2c"],
  ["transfer-encoding", "chunked", "gzip, chunked", "identity"],
  ["content-length", "0", "5", "-1", "1e2", "99999999999999999999"],
  ["origin", "https://shop.example", "null"],
  ["access-control-request-method", "POST"],
  ["forwarded", "for=192.0.2.60;proto=http;by=203.0.113.43", 'for="[2001:db8::1]:47"', "for=_x, for=unknown"],
  ["x-internal-secret", "guess"],
  ["x-internal-caller", "admin"],
  ["host", "localhost", "a", "a/b", "a b"],
  ["range", "bytes=0-1"],
  ["trailer", "x"],
  ["cookie", "a=b"],
];
const header = fc.oneof(
  ...KNOWN.map(([name, ...values]) => ({
    weight: 3,
    arbitrary: fc.tuple(fc.constant<Text>(name), mostly(among(...values), 3)),
  })),
  { weight: 4, arbitrary: fc.tuple(oddField, oddField) },
);
const HOST: readonly [Text, Text] = ["host", "127.0.0.1"];
const KEY: readonly [Text, Text] = ["x-api-key", "{key}"];
const CALLER: readonly [Text, Text] = ["x-forwarded-for", "192.0.2.2"];
const TYPE: readonly [Text, Text] = ["content-type", "application/json"];
const always = fc.constant<readonly [Text, Text]>;
/** A different address each time: an address that sends too many wrong credentials is refused. */
const elsewhere = fc.tuple(
  fc.constant<Text>("x-forwarded-for"),
  fc.tuple(
    fc.constant<Text>("2001:db8:"),
    fc.constantFrom<Text[]>(..."123456789abcdef"),
    fc.constantFrom<Text[]>(..."123456789abcdef"),
    fc.constant<Text>("::1"),
  ),
);
const headers = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(always(HOST), always(KEY), always(CALLER), always(TYPE)) },
  { weight: 4, arbitrary: fc.tuple(always(HOST), always(KEY), always(CALLER), always(TYPE), header) },
  { weight: 2, arbitrary: fc.tuple(always(HOST), always(KEY), always(CALLER), always(TYPE), header, header, header) },
  { weight: 2, arbitrary: fc.tuple(always(HOST), elsewhere, header, header) },
  { weight: 1, arbitrary: fc.array(header, { maxLength: 5 }) },
);
const VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const version = fc.oneof(
  { weight: 30, arbitrary: among("HTTP/1.1") },
  { weight: 1, arbitrary: among("HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "", "FTP/1.1") },
);
const verbOf = (usual: string) =>
  fc.oneof(
    { weight: 20, arbitrary: among(usual) },
    { weight: 2, arbitrary: among(...VERBS, "CONNECT", "TRACE", "BREW", "M-SEARCH") },
    { weight: 1, arbitrary: oddField },
  );
const framing = fc.constantFrom<("length" | "chunked" | "none")[]>("length", "length", "length", "chunked", "none");

function requestOf(operation: Operation): fc.Arbitrary<HttpRequest> {
  const common = { verb: verbOf(operation.verb), target: targetOf(operation), version, headers };
  const { body } = operation;
  const desc = body?.kind === "field" ? body.field.message : undefined;
  if (!desc) return fc.record(common);
  return fc.record({ ...common, body: fc.record({ framing, content: jsonOf(desc, "http") }) });
}
const beside: fc.Arbitrary<HttpRequest> = fc.record({
  verb: verbOf("GET"),
  target: mostly(
    among("/openapi.json", "/docs", "/docs/x", "/healthz", "/readyz", "*", "/", "http://a/pets", "//a/pets", "a:1"),
  ),
  version,
  headers,
});
const request = fc.oneof(...operations.map((operation) => ({ weight: 3, arbitrary: requestOf(operation) })), {
  weight: 4,
  arbitrary: beside,
});
const damage = fc.array(
  fc.record({
    at: fc.nat({ max: 2000 }),
    bytes: fc.oneof(bytes(4), among("\r\n", "\n", "\r", "\0", ":", " ", "\r\n\r\n")),
  }),
  { minLength: 1, maxLength: 3 },
);

export const http: RemoteTarget<HttpCase> = {
  name: "http",
  about: "odd HTTP/1.1 requests to the gateway",
  cases: fc.oneof(
    { weight: 12, arbitrary: fc.record({ requests: fc.tuple(request) }) },
    { weight: 2, arbitrary: fc.record({ requests: fc.array(request, { minLength: 1, maxLength: 4 }) }) },
    {
      weight: 4,
      arbitrary: fc.record(
        {
          requests: fc.array(request, { minLength: 1, maxLength: 2 }),
          damage,
          cut: fc.nat({ max: 1000 }),
          packets: fc.integer({ min: 1, max: 5 }),
          end: fc.constantFrom<End[]>("FIN", "RST"),
        },
        { requiredKeys: ["requests"] },
      ),
    },
  ),
  send,
};
