/** Frames of a link, from a peer that knows the secret but breaks the rules. */
import { connect, constants } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { SECRET_HEADER } from "@petstore/rpc/call";
import fc from "fast-check";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import {
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  LinkResponseSchema,
} from "../../../packages/rpc/gen/link/internal/v1/link_service_pb.ts";
import { LINK_CONTENT_TYPE, LINK_PATH, readFrames, toFrame } from "../../../packages/rpc/link/frames.ts";
import { codeName } from "../../api/cases/case.ts";
import { cutInto } from "../connection.ts";
import { expectThat, Find } from "../find.ts";
import { judgeRpcError, judgeText } from "../judge.ts";
import { type Wire, wireBytes, wireOf } from "../messages.ts";
import type { Subject } from "../subject.ts";
import type { RemoteTarget, Sent } from "../target.ts";
import { bytes, bytesOf, oddString, repeated, type Text } from "../texts.ts";

interface Call {
  readonly id: number;
  /** The method's number on the link, sent with its name if the number is new. */
  readonly method: { readonly number: number; readonly name: string };
  readonly message: readonly Wire[];
  readonly timeoutMs: number;
  readonly requestId: Text;
  readonly caller: Text;
  readonly headers: readonly { readonly name: Text; readonly value: Text }[];
}

type Part =
  | { readonly hello: number }
  | { readonly calls: readonly Call[]; readonly cancels: readonly number[] }
  | { readonly methods: readonly { readonly number: number; readonly name: Text }[] }
  | { readonly raw: Text };

export interface LinkCase {
  readonly parts: readonly Part[];
  readonly cut?: number;
  readonly packets?: number;
  readonly end?: "FIN" | "RST";
}

const text = (one: Text): string => bytesOf(one, "latin1").toString("latin1");

function framesOf(parts: readonly Part[]): Buffer {
  const named = new Set<number>();
  return Buffer.concat(
    parts.map((part) => {
      if ("raw" in part) return bytesOf(part.raw, "latin1");
      if ("hello" in part) return toFrame(LinkRequestSchema, { hello: { version: part.hello } });
      if ("methods" in part)
        return toFrame(LinkRequestSchema, {
          methods: part.methods.map(({ number, name }) => ({ number, name: text(name) })),
        });
      const fresh = part.calls
        .map(({ method }) => method)
        .filter(({ number }) => !named.has(number) && named.add(number));
      return toFrame(LinkRequestSchema, {
        methods: fresh,
        calls: part.calls.map((call) => ({
          ...call,
          method: call.method.number,
          message: wireBytes(call.message),
          requestId: text(call.requestId),
          caller: text(call.caller),
          headers: call.headers.map(({ name, value }) => ({ name: text(name), value: text(value) })),
        })),
        cancels: [...part.cancels],
      } satisfies Partial<LinkRequest> | object);
    }),
  );
}

const STUCK_MS = 60_000;

async function send({ parts, cut, packets = 1, end = "FIN" }: LinkCase, { port, credentials }: Subject): Promise<Sent> {
  const whole = framesOf(parts);
  const all = cut === undefined ? whole : whole.subarray(0, Math.ceil((whole.length * cut) / 1000));
  const session = connect(`http://127.0.0.1:${port("pet")}`).on("error", () => {});
  const gone = new Promise<void>((resolve) => void session.once("close", () => resolve()));
  const stream = session.request({
    ":method": "POST",
    ":path": LINK_PATH,
    "content-type": LINK_CONTENT_TYPE,
    te: "trailers",
    [SECRET_HEADER]: credentials.secret,
  });
  const asked = new Map<number, number>();
  for (const part of parts)
    if ("calls" in part) for (const { id } of part.calls) asked.set(id, (asked.get(id) ?? 0) + 1);
  const problems: unknown[] = [];
  const reader = readFrames(LinkResponseSchema, (message) => judgeAnswers(message, asked, all));
  let message = "";
  stream.on("data", (chunk: Buffer) => {
    try {
      reader.read(chunk);
    } catch (error) {
      problems.push(error instanceof Find ? error : new Find("a service breaks the rules of a link", `${error}`));
    }
  });
  stream.on("trailers", (trailers) => {
    message = `${trailers["grpc-message"] ?? ""}`;
  });
  stream.on("error", () => {});
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  stream.once("close", () => resolve());
  const stuck = setTimeout(() => {
    stream.destroy();
    reject(new Find("a link is never ended, though its caller has no more to say"));
  }, STUCK_MS);
  try {
    for (const part of cutInto(packets, all)) stream.write(part);
    if (end === "FIN") stream.end();
    else stream.close(constants.NGHTTP2_CANCEL);
    await ended;
  } finally {
    clearTimeout(stuck);
    session.destroy();
    await gone;
  }
  if (problems.length > 0) throw problems[0];
  judgeText(message, all);
  return { to: "pet", bytes: all.length, isAnswered: false, isRefused: false, writes: true };
}

function judgeAnswers({ answers }: LinkResponse, asked: Map<number, number>, sent: Buffer): void {
  for (const { id, outcome } of answers) {
    const left = asked.get(id) ?? 0;
    expectThat(left > 0, "a service answers a call that it was not sent", `${id}`);
    asked.set(id, left - 1);
    if (outcome.case !== "failure") continue;
    const { code, message } = outcome.value;
    judgeText(message, sent);
    // A message that can't be read is INTERNAL, as in gRPC.
    judgeRpcError(codeName(code, Code), message, { isReadable: false });
  }
}

const id = fc.oneof(fc.nat({ max: 3 }), fc.constantFrom(2 ** 32 - 1));
const field: fc.Arbitrary<Text> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Text[]>("", "abc", "key:0", "anonymous", "a b", "x-a", "\u00e9") },
  { weight: 2, arbitrary: oddString },
  { weight: 1, arbitrary: repeated(60_000, ["a", " "]) },
);
function callTo(method: DescMethod, number: number): fc.Arbitrary<Call> {
  return fc.record({
    id,
    method: fc.constant({ number, name: `${PetService.typeName}/${method.name}` }),
    message: wireOf(method.input),
    timeoutMs: fc.constantFrom(0, 1, 1000, 1000, 2 ** 32 - 1),
    requestId: field,
    caller: fc.oneof({ weight: 3, arbitrary: fc.constant<Text>("key:fuzz") }, { weight: 1, arbitrary: field }),
    headers: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.record({ name: field, value: field }), { maxLength: 3 }) },
    ),
  });
}
const call = fc.oneof(...PetService.methods.map((method, i) => callTo(method, i + 1)));
const part: fc.Arbitrary<Part> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ calls: fc.array(call, { maxLength: 4 }), cancels: fc.array(id, { maxLength: 2 }) }),
  },
  { weight: 1, arbitrary: fc.record({ hello: fc.constantFrom(0, 1, 2, 2 ** 32 - 1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      methods: fc.array(fc.record({ number: fc.constantFrom(1, 50, 51), name: field }), { maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ raw: bytes(20) }) },
);
const hello = fc.record({ hello: fc.constant(1) });

export const link: RemoteTarget<LinkCase> = {
  name: "link",
  about: "frames of a link, from a caller that knows the secret",
  cases: fc.record(
    {
      parts: fc.oneof(
        { weight: 6, arbitrary: fc.tuple(hello, part) },
        { weight: 3, arbitrary: fc.tuple(hello, part, part, part) },
        { weight: 1, arbitrary: fc.array(part, { maxLength: 4 }) },
      ),
      cut: fc.nat({ max: 1000 }),
      packets: fc.integer({ min: 1, max: 4 }),
      end: fc.constantFrom<("FIN" | "RST")[]>("FIN", "FIN", "RST"),
    },
    { requiredKeys: ["parts"] },
  ),
  send,
};
