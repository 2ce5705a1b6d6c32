/** Calls every RPC and some that do not exist, by Connect, gRPC and gRPC-Web, over HTTP/1.1 and HTTP/2. */
import { connect, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { CategoryInternalService } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { publicServices } from "../../../gateway/services.ts";
import { envelope } from "../../../packages/rpc/fixtures/envelope.ts";
import { ServerReflection } from "../../../packages/rpc/gen/grpc/reflection/v1/reflection_pb.ts";
import { LinkService } from "../../../packages/rpc/gen/link/internal/v1/link_service_pb.ts";
import type { ProcessName } from "../../../processes/names.ts";
import { cutInto, type End, exchange } from "../connection.ts";
import { expectThat, Find } from "../find.ts";
import { type HttpAnswer, readAnswers } from "../http1-answers.ts";
import { type Json, jsonBytes, jsonOf, type Wire, wireBytes, wireOf } from "../messages.ts";
import { judgeRpc } from "../rpc-answers.ts";
import type { Subject } from "../subject.ts";
import type { RemoteTarget, Sent } from "../target.ts";
import { bytes, bytesOf, oddField, type Text } from "../texts.ts";

type Message = { readonly json: Json } | { readonly wire: readonly Wire[] } | { readonly raw: Text };
type Packing = "no" | "gzip" | "br";

export interface RpcCase {
  readonly at: ProcessName;
  /** "package.Service/Method". */
  readonly rpc: string;
  readonly over: "HTTP/1.1" | "HTTP/2";
  /** The content type; "GET" is a Connect GET. */
  readonly type: Text;
  readonly message: Message;
  readonly headers: readonly (readonly [name: Text, value: Text])[];
  /** For types with envelopes: the flags, and a length instead of the true one. Each envelope has the message. */
  readonly envelopes: readonly { readonly flags: number; readonly length?: number }[];
  readonly packing: Packing;
  readonly packets?: number;
  readonly end?: End;
}

const DESCS = {
  pet: PetInternalService,
  category: CategoryInternalService,
  order: OrderInternalService,
  inventory: InventoryInternalService,
} as const;
const methods = [
  ...publicServices.map(({ desc }) => desc),
  ...Object.values(DESCS),
  ServerReflection,
  LinkService,
].flatMap(({ methods }: DescService): readonly DescMethod[] => methods);
const pathOf = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`;
const byPath = new Map(methods.map((method) => [pathOf(method), method]));
const writes = (rpc: string) => byPath.get(rpc)?.idempotency !== Level.NO_SIDE_EFFECTS;

const pack: Record<Packing, (bytes: Buffer) => Buffer> = {
  no: (plain) => plain,
  gzip: gzipSync,
  br: brotliCompressSync,
};

function messageBytes(message: Message): Buffer {
  if ("json" in message) return jsonBytes(message.json);
  return Buffer.from("wire" in message ? wireBytes(message.wire) : bytesOf(message.raw));
}

function bodyOf({ type, message, envelopes, packing }: RpcCase): Buffer {
  const packed = pack[packing](messageBytes(message));
  if (!/^application\/(grpc|connect\+)/.test(bytesOf(type).toString())) return packed;
  const body = Buffer.concat(envelopes.map((how) => envelope(packed, how)));
  return bytesOf(type).toString().startsWith("application/grpc-web-text") ? Buffer.from(body.toString("base64")) : body;
}

interface Request {
  readonly verb: string;
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

function requestOf(one: RpcCase, key: string): Request {
  const encoding = /^application\/grpc/.test(bytesOf(one.type).toString())
    ? "grpc-encoding"
    : /^application\/connect\+/.test(bytesOf(one.type).toString())
      ? "connect-content-encoding"
      : "content-encoding";
  const fields = one.headers.map(
    ([name, value]) =>
      [
        bytesOf(name, "latin1").toString("latin1"),
        bytesOf(value, "latin1").toString("latin1").replaceAll("{key}", key),
      ] as const,
  );
  const packing = one.packing === "no" ? [] : [[encoding, one.packing] as const];
  if (one.type === "GET") {
    const text = pack[one.packing](messageBytes(one.message)).toString("base64url");
    const query = `connect=v1&encoding=${"json" in one.message ? "json" : "proto"}&base64=1&message=${text}`;
    const packed = one.packing === "no" ? "" : `&compression=${one.packing}`;
    return { verb: "GET", path: `/${one.rpc}?${query}${packed}`, fields, body: Buffer.alloc(0) };
  }
  const type = bytesOf(one.type, "latin1").toString("latin1");
  return {
    verb: "POST",
    path: `/${one.rpc}`,
    fields: [["content-type", type], ...packing, ...fields],
    body: bodyOf(one),
  };
}

/** Codes that leave the outcome unknown. */
const UNSURE = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELED"]);

async function send(one: RpcCase, { port, credentials }: Subject): Promise<Sent> {
  const request = requestOf(one, credentials.key);
  const sent = Buffer.from(
    `${request.path}\n${request.fields.join("\n")}\n${request.body.toString("latin1")}`,
    "latin1",
  );
  const { answer, isCut } = await (one.over === "HTTP/2" ? overHttp2 : overHttp1)(one, request, port(one.at));
  const code = answer && judgeRpc(answer, { process: one.at, sent, isCut });
  return {
    to: one.at,
    bytes: sent.length,
    isAnswered: code !== undefined && !isCut && !UNSURE.has(code),
    isRefused: code !== undefined && code !== "OK" && !UNSURE.has(code),
    writes: writes(one.rpc),
  };
}

interface Answered {
  readonly answer: HttpAnswer | undefined;
  readonly isCut: boolean;
}

async function overHttp1(one: RpcCase, { verb, path, fields, body }: Request, port: number): Promise<Answered> {
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const length = verb === "GET" ? "" : `content-length: ${body.length}\r\n`;
  const text = `${verb} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${head}${length}\r\n`;
  const all = Buffer.concat([Buffer.from(text, "latin1"), body]);
  const enoughMs = isStream(one) ? STREAM_MS : undefined;
  const exchanged = await exchange(port, cutInto(one.packets ?? 1, all), one.end ?? "FIN", enoughMs);
  const { received } = exchanged;
  // Node's server takes a caller that has ended its side for gone, and breaks off its stream.
  const isCut = exchanged.isCut || isStream(one);
  const [answer] = readAnswers(received, [verb], isCut);
  return { answer, isCut };
}

/** Whether the RPC streams, so that its answer may go on as long as its caller is there. */
const isStream = ({ rpc }: RpcCase) => byPath.get(rpc)?.methodKind.includes("streaming") === true;
/** A silent stream is ended here after so long. Time is not judged otherwise. */
const STREAM_MS = 1000;
const STUCK_MS = 60_000;

async function overHttp2(one: RpcCase, { verb, path, fields, body }: Request, port: number): Promise<Answered> {
  const session = connect(`http://127.0.0.1:${port}`);
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  session.once("close", () => close()).on("error", () => {});
  const chunks: Buffer[] = [];
  let head: IncomingHttpHeaders | undefined;
  let trailers: IncomingHttpHeaders = {};
  let isCut = one.end === "RST";
  try {
    const stream = session.request({ ":method": verb, ":path": path, te: "trailers", ...grouped(fields) });
    stream.on("response", (got) => {
      head = got;
    });
    stream.on("trailers", (got) => {
      trailers = got;
    });
    stream.on("error", () => {
      isCut = true;
    });
    const ended = new Promise<void>((resolve) => void stream.once("close", () => resolve()));
    const late = setTimeout(
      () => {
        isCut = true;
        stream.close(constants.NGHTTP2_CANCEL);
      },
      isStream(one) ? STREAM_MS : STUCK_MS,
    );
    stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
    for (const part of cutInto(one.packets ?? 1, body)) stream.write(part);
    if (one.end === "RST") stream.close(constants.NGHTTP2_CANCEL);
    else stream.end();
    await ended;
    clearTimeout(late);
    expectThat(head !== undefined || isCut, "a call over HTTP/2 is not answered");
  } catch (error) {
    if (error instanceof Find) throw error;
    return { answer: undefined, isCut: true }; // no client can send it
  } finally {
    session.close();
    const forced = setTimeout(() => session.destroy(), STREAM_MS);
    await closed;
    clearTimeout(forced);
  }
  if (head === undefined) return { answer: undefined, isCut };
  const answer: HttpAnswer = {
    status: Number(head[":status"]),
    headers: mapOf(head),
    body: Buffer.concat(chunks),
    trailers: mapOf(trailers),
  };
  return { answer, isCut };
}

/** Headers for Node's client, which takes several fields of one name as a list. */
const grouped = (fields: Request["fields"]): OutgoingHttpHeaders =>
  Object.fromEntries(
    [...Map.groupBy(fields, ([name]) => name)].map(([name, some]) => {
      const values = some.map(([, value]) => value);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );

const mapOf = (fields: IncomingHttpHeaders): ReadonlyMap<string, string> =>
  new Map(Object.entries(fields).map(([name, value]) => [name, `${value}`]));

const TYPES = [
  ...["application/json", "application/proto", "GET", "application/connect+json", "application/connect+proto"],
  ...[
    "application/grpc",
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc-web",
    "application/grpc-web+proto",
  ],
  ...["application/grpc-web+json", "application/grpc-web-text", "application/grpc-web-text+proto"],
];
const type = fc.oneof({ weight: 20, arbitrary: fc.constantFrom<Text[]>(...TYPES) }, { weight: 1, arbitrary: oddField });
const KNOWN: readonly (readonly [name: string, ...values: string[]])[] = [
  ["connect-protocol-version", "1", "2"],
  ["connect-timeout-ms", "1000", "0", "1", "99999999999", "-1"],
  ["grpc-timeout", "1S", "100m", "0n", "99999999H", "1"],
  ["grpc-encoding", "gzip", "br", "identity", "rot13"],
  ["content-encoding", "gzip", "br", "identity"],
  ["connect-content-encoding", "gzip", "identity"],
  ["grpc-accept-encoding", "gzip", "identity"],
  ["accept-encoding", "gzip", "br"],
  ["connect-accept-encoding", "gzip", "br"],
  ["authorization", "Bearer {key}", "Bearer x.y.z"],
  ["x-request-id", "abc"],
  ["x-internal-secret", "guess"],
  ["x-internal-caller", "admin"],
  ["x-internal-key-seen", "99"],
  ["x-bin", "AAA", "="],
  ["grpc-trace-bin", "AAA="],
  ["origin", "https://shop.example"],
  ["te", "trailers", "gzip"],
];
const header = fc.oneof(
  ...KNOWN.map(([name, ...values]) => ({
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant<Text>(name),
      fc.oneof({ weight: 3, arbitrary: fc.constantFrom<Text[]>(...values) }, { weight: 1, arbitrary: oddField }),
    ),
  })),
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom<Text[]>("x-a", "grpc-x", "connect-x"), oddField) },
);
const always = fc.constant<readonly [Text, Text]>;
const usual = [always(["x-api-key", "{key}"]), always(["x-forwarded-for", "192.0.2.3"])] as const;
const headers = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(...usual) },
  { weight: 4, arbitrary: fc.tuple(...usual, header) },
  { weight: 2, arbitrary: fc.tuple(...usual, header, header, header) },
  { weight: 1, arbitrary: fc.array(header, { maxLength: 4 }) },
);
const framing = fc.oneof(
  { weight: 5, arbitrary: fc.record({ flags: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ flags: fc.constantFrom(0, 1, 2, 3, 128, 255) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      flags: fc.constantFrom(0, 1),
      length: fc.constantFrom(0, 1, 2, 100, 2 ** 20, 2 ** 20 + 1, 2 ** 31, 2 ** 32 - 1),
    }),
  },
);
const envelopes = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.record({ flags: fc.constant(0) })) },
  { weight: 3, arbitrary: fc.array(framing, { maxLength: 3 }) },
);
const packing = fc.constantFrom<Packing[]>("no", "no", "no", "no", "gzip", "br");

function callsOf(method: DescMethod, at: ProcessName): fc.Arbitrary<RpcCase> {
  const over = fc.constantFrom<RpcCase["over"][]>(
    ...(at === "gateway" ? ["HTTP/1.1" as const] : ["HTTP/1.1" as const, "HTTP/2" as const]),
  );
  const common = { at: fc.constant(at), rpc: fc.constant(pathOf(method)), over, type, headers, envelopes, packing };
  const json = fc.record({ json: jsonOf(method.input, "rpc") });
  const wire = fc.record({ wire: wireOf(method.input) });
  const message = fc.oneof(
    { weight: 4, arbitrary: json },
    { weight: 4, arbitrary: wire },
    { weight: 1, arbitrary: fc.record({ raw: bytes(20) }) },
  );
  return fc.record(
    {
      ...common,
      message,
      packets: fc.integer({ min: 1, max: 4 }),
      end: fc.constantFrom<End[]>("FIN", "FIN", "FIN", "RST"),
    },
    { requiredKeys: ["at", "rpc", "over", "type", "message", "headers", "envelopes", "packing"] },
  );
}

const services = publicServices.flatMap(({ name, desc }) =>
  [desc, DESCS[name as keyof typeof DESCS]].flatMap(({ methods }: DescService) =>
    methods.flatMap((method: DescMethod) => [callsOf(method, name), callsOf(method, "gateway")]),
  ),
);
const beside = [...ServerReflection.methods, ...LinkService.methods].map((method) => callsOf(method, "pet"));

export const rpc: RemoteTarget<RpcCase> = {
  name: "rpc",
  about: "calls by Connect, gRPC and gRPC-Web, over HTTP/1.1 and HTTP/2, to the gateway and the services",
  cases: fc.oneof(...services, ...beside),
  send,
};
