/** Malicious HTTP/2 frames to a service, between valid requests. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  FrameType,
  frame,
  headerBlock,
  PREFACE,
  ping,
  settings,
} from "../../../packages/rpc/fixtures/frames.ts";
import { cutInto } from "../connection.ts";
import { expectThat, Find } from "../find.ts";
import type { Subject } from "../subject.ts";
import type { RemoteTarget, Sent } from "../target.ts";
import { bytes, bytesOf, oddField, type Text } from "../texts.ts";

type Frame =
  /** A valid call on a stream. Its body follows if it has one. */
  | { readonly call: number; readonly body?: Text; readonly open?: boolean }
  | {
      readonly stream: number;
      readonly fields: readonly (readonly [name: Text, value: Text])[];
      readonly flags: number;
    }
  | { readonly type: number; readonly flags: number; readonly stream: number; readonly payload: Text }
  | { readonly raw: Text };

export interface Http2Case {
  readonly preface?: Text;
  readonly frames: readonly Frame[];
  /** How many times all frames are sent. */
  readonly times?: number;
  readonly cut?: number;
  readonly packets?: number;
  readonly end?: "FIN" | "RST";
}

const LIST = `/${PetService.typeName}/ListPets`;
const EMPTY_MESSAGE = Buffer.alloc(5);

function callBytes(stream: number, key: string, body: Buffer, isOpen: boolean): Buffer[] {
  const fields: Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", LIST],
    [":authority", "127.0.0.1"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
    ["x-api-key", key],
  ];
  return [
    frame({ type: FrameType.HEADERS, flags: END_HEADERS, stream, payload: headerBlock(fields) }),
    frame({ type: FrameType.DATA, flags: isOpen ? 0 : END_STREAM, stream, payload: body }),
  ];
}

function bytesOfFrame(one: Frame, key: string): Buffer[] {
  if ("raw" in one) return [bytesOf(one.raw, "latin1")];
  if ("call" in one)
    return callBytes(
      one.call,
      key,
      one.body === undefined ? EMPTY_MESSAGE : bytesOf(one.body, "latin1"),
      one.open === true,
    );
  if ("fields" in one) {
    const text = (part: Text) => bytesOf(part, "latin1").toString("latin1").replaceAll("{key}", key);
    const payload = headerBlock(one.fields.map(([name, value]) => [text(name), text(value)]));
    return [frame({ type: FrameType.HEADERS, flags: one.flags, stream: one.stream, payload })];
  }
  return [frame({ ...one, payload: bytesOf(one.payload, "latin1") })];
}

const FORGOTTEN_MS = 60_000;
/** How long to wait for answers that may not come. */
const QUIET_MS = 50;
const LAST_PING = 0x6675_7a7a;

async function send(one: Http2Case, { port, credentials: { key } }: Subject): Promise<Sent> {
  const { preface, frames, times = 1, cut, packets = 1, end = "FIN" } = one;
  const some = frames.flatMap((each) => bytesOfFrame(each, key));
  const front = preface === undefined ? Buffer.concat([PREFACE, settings()]) : bytesOf(preface, "latin1");
  const whole = Buffer.concat([front, ...Array.from({ length: times }, () => some).flat()]);
  const all = cut === undefined ? whole : whole.subarray(0, Math.ceil((whole.length * cut) / 1000));
  const socket = connect({ port: port("pet"), host: "127.0.0.1", noDelay: true }).on("error", () => {});
  const chunks: Buffer[] = [];
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  const heard = Promise.withResolvers<void>();
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    if (Buffer.concat(chunks).includes(ping(LAST_PING).subarray(9))) heard.resolve();
  });
  const forgotten = sleep(FORGOTTEN_MS, "forgotten" as const, { ref: false });
  for (const part of cutInto(packets, all)) socket.write(part);
  socket.write(ping(LAST_PING));
  // After a wrong preface, or inside of a frame that is longer than the rest of the bytes, the ping is not read.
  await Promise.race([heard.promise, closed, sleep(cut === undefined && preface === undefined ? 500 : QUIET_MS)]);
  if (frames.some((each) => !("raw" in each))) await Promise.race([closed, sleep(QUIET_MS)]);
  if (end === "FIN") socket.end();
  else socket.resetAndDestroy();
  const how = await Promise.race([closed, forgotten]);
  socket.destroy();
  if (how === "forgotten") throw new Find("a connection of HTTP/2 is never closed, though nothing more is to come");
  judgeFrames(Buffer.concat(chunks));
  return { to: "pet", bytes: all.length, isAnswered: false, isRefused: false, writes: false };
}

/** HPACK's static table has ":status 500" at 14; an indexed field has the highest bit set. */
const STATUS_500 = 0x80 | 14;

function judgeFrames(all: Buffer): void {
  for (let at = 0; at + 9 <= all.length; ) {
    const [length, type, flags] = [all.readUIntBE(at, 3), all.readUInt8(at + 3), all.readUInt8(at + 4)];
    if (at === 0 && all.toString("latin1", 0, 5) === "HTTP/") return; // answers what is not HTTP/2
    expectThat(at > 0 || type === FrameType.SETTINGS, "a connection of HTTP/2 does not begin with SETTINGS", `${type}`);
    expectThat(length <= 2 ** 24 - 1 && type <= 0x10, "a frame that HTTP/2 does not know", `${type}, ${length} bytes`);
    if (at + 9 + length > all.length) return;
    const payload = all.subarray(at + 9, at + 9 + length);
    if (type === FrameType.HEADERS) expectThat(payload[0] !== STATUS_500, "an answer 500 over HTTP/2");
    if (type === FrameType.PING && (flags & ACK) === 0) expectThat(length === 8, "a ping that is none");
    at += 9 + length;
  }
}

const stream = fc.constantFrom(0, 1, 1, 3, 5, 2, 7, 2 ** 31 - 1);
const flags = fc.constantFrom(0, END_STREAM, END_HEADERS, END_STREAM | END_HEADERS, 8, 0x20, 0x2d, 255);
const uint32 = fc.constantFrom<Text[]>(
  ...["00000000", "00000001", "7fffffff", "80000000", "ffffffff", "00000008", "0000000b"].map((hex) => ({ hex })),
);
const setting = fc.tuple(
  fc.constantFrom<Text[]>(...["0001", "0002", "0003", "0004", "0005", "0006", "0008", "00ff"].map((hex) => ({ hex }))),
  uint32,
);
const field = fc.tuple(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom<Text[]>(":method", ":path", ":scheme", ":authority", ":status", ":protocol", "host"),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom<Text[]>(
        "content-type",
        "te",
        "connection",
        "content-length",
        "x-api-key",
        "X-A",
        "cookie",
      ),
    },
    { weight: 1, arbitrary: oddField },
  ),
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom<Text[]>(
        "POST",
        "GET",
        "CONNECT",
        LIST,
        "/",
        "http",
        "127.0.0.1",
        "{key}",
        "trailers",
        "5",
      ),
    },
    { weight: 1, arbitrary: oddField },
  ),
);
const ofType = <T extends number>(type: T, payload: fc.Arbitrary<Text>) =>
  fc.record({ type: fc.constant(type), flags, stream, payload });
const one: fc.Arbitrary<Frame> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ call: fc.constantFrom(1, 3, 5, 7, 9) }) },
  {
    weight: 2,
    arbitrary: fc.record(
      { call: fc.constantFrom(1, 3, 5, 2), body: bytes(30), open: fc.boolean() },
      { requiredKeys: ["call"] },
    ),
  },
  { weight: 4, arbitrary: fc.record({ stream, fields: fc.array(field, { maxLength: 6 }), flags }) },
  { weight: 2, arbitrary: ofType(FrameType.DATA, bytes(40)) },
  { weight: 2, arbitrary: ofType(FrameType.HEADERS, bytes(40)) },
  { weight: 1, arbitrary: ofType(2, fc.oneof(uint32, bytes(6))) },
  { weight: 3, arbitrary: ofType(FrameType.RST_STREAM, fc.oneof(uint32, bytes(5))) },
  { weight: 3, arbitrary: ofType(FrameType.SETTINGS, fc.oneof(fc.array(setting, { maxLength: 4 }), bytes(13))) },
  { weight: 1, arbitrary: ofType(5, bytes(10)) },
  { weight: 2, arbitrary: ofType(FrameType.PING, fc.oneof(bytes(9), fc.constant<Text>({ hex: "0000000000000001" }))) },
  { weight: 2, arbitrary: ofType(FrameType.GOAWAY, fc.oneof(fc.tuple(uint32, uint32), bytes(12))) },
  { weight: 3, arbitrary: ofType(FrameType.WINDOW_UPDATE, fc.oneof(uint32, bytes(5))) },
  { weight: 2, arbitrary: ofType(FrameType.CONTINUATION, bytes(20)) },
  { weight: 1, arbitrary: fc.record({ type: fc.nat({ max: 255 }), flags, stream, payload: bytes(20) }) },
  { weight: 1, arbitrary: fc.record({ raw: bytes(20) }) },
);

export const http2: RemoteTarget<Http2Case> = {
  name: "http2",
  about: "HTTP/2 frames in any order, to a service",
  cases: fc.record(
    {
      frames: fc.array(one, { maxLength: 8 }),
      preface: fc.constantFrom<Text[]>(
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "PR",
        "PRI * HTTP/1.1\r\n\r\n",
      ),
      times: fc.constantFrom(1, 2, 100),
      cut: fc.nat({ max: 1000 }),
      packets: fc.integer({ min: 1, max: 4 }),
      end: fc.constantFrom<("FIN" | "RST")[]>("FIN", "RST"),
    },
    { requiredKeys: ["frames"] },
  ),
  send,
};
