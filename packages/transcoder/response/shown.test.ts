import { create, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { compileLibrary, compileProtos, serviceOf } from "../testdata/compile.ts";
import { type Kinds, messagesOf } from "../testdata/messages.ts";
import { type Answer, answerer } from "./answer.ts";
import { type Shown, shownReader } from "./shown.ts";

const proto = `syntax = "proto3";
package shelf.v1;
import "google/api/annotations.proto";
import "google/protobuf/timestamp.proto";
import "transcoder/v1/annotations.proto";

service ShelfService {
  rpc ListThings(ListThingsRequest) returns (ListThingsResponse) {
    option (google.api.http) = { get: "/things" response_body: "things" };
  }
  rpc ListWords(Nothing) returns (Words) {
    option (google.api.http) = { get: "/words" response_body: "words" };
  }
  rpc GetThing(Nothing) returns (GetThingResponse) {
    option (google.api.http) = { get: "/thing" response_body: "thing" };
  }
  rpc GetTime(Nothing) returns (GetTimeResponse) {
    option (google.api.http) = { get: "/time" response_body: "at" };
  }
  rpc GetWhole(Nothing) returns (Thing) {
    option (google.api.http) = { get: "/whole" };
  }
}
message Nothing {}
message ListThingsRequest { string page_token = 1; }
message ListThingsResponse { repeated Thing things = 1; string next_page_token = 2; }
message GetThingResponse { Thing thing = 1; }
message GetTimeResponse { google.protobuf.Timestamp at = 1; }
message Words { repeated string words = 3; }
enum Genre { GENRE_UNSPECIFIED = 0; GENRE_NOVEL = 1; }
enum Side { SIDE_LEFT = 0; SIDE_RIGHT = 1; }
enum Shelf { option allow_alias = true; SHELF_UPPER = 0; SHELF_TOP = 0; SHELF_LOWER = 1; SHELF_BOTTOM = 1; }
message Thing {
  int32 a = 1; uint32 b = 2; int64 c = 3; uint64 d = 4; bool e = 5; string f = 6; Genre g = 7; Side h = 8;
  optional int32 oa = 9; optional int64 oc = 11; optional bool oe = 12; optional string of = 13;
  optional Genre og = 14; optional Side oh = 15;
  google.protobuf.Timestamp at = 16;
  Inner inner = 17;
  repeated Inner inners = 2000;
  repeated string words = 19;
  Shelf shelf = 21;
  string etag = 20 [(transcoder.v1.field) = { header: "ETag" output_only: true }];
}
message Inner { string name = 1; optional int64 number = 2; string tag = 3 [(transcoder.v1.field) = { header: "ETag" }]; }
`;

const shelf = operationsOf(serviceOf(compileProtos({ "shelf.proto": proto }), "shelf.v1.ShelfService"));
const library = operationsOf(serviceOf(compileLibrary(), "foreign.library.v1.LibraryService"));
const served = [...shelf, ...library.filter(({ id }) => id === "catalogue")].map((operation) => ({
  name: operation.id,
  output: operation.method.output,
  read: shownReader(operation) ?? expect.unreachable(),
  answerOf: answerer(operation, { basePath: "/base" }),
}));
type Served = (typeof served)[number];

const usual: Kinds = {
  string: fc.string({ unit: "grapheme" }).filter((text) => text.isWellFormed() && !text.includes("\ufffd")),
  integer: fc.bigInt({ min: 0n, max: 2n ** 49n - 1n }),
  hasNamelessEnumValues: false,
};
const unusual: Kinds = {
  string: fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("\ufeffa", "\ufffd", "\0", '"', "\\", "\x7f", "\u2028"),
  ),
  integer: fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.constantFrom(-1n, 127n, 128n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 49n - 1n, 2n ** 49n, 2n ** 53n),
  ),
  hasNamelessEnumValues: true,
};

/** What is answered; in words when it can't be sent. */
function answerTo({ answerOf }: Served, made: Message | Shown): unknown {
  try {
    return answerOf(made, new Headers(), "/things?a=b");
  } catch (error) {
    return String(error);
  }
}

/** What is answered with the message; undefined when it can't be read. */
function answered(one: Served, bytes: Uint8Array): unknown {
  try {
    return answerTo(one, fromBinary(one.output, bytes));
  } catch {
    return undefined;
  }
}

function expectSame(one: Served, bytes: Uint8Array): void {
  const shown = one.read(bytes);
  if (shown) expect(answerTo(one, shown as Shown)).toEqual(answered(one, bytes));
}

describe.each(served.map((one) => [one.name, one] as const))("an answer of %s", (_, one) => {
  test("that is as usual is read without a message, and answered as with one", () => {
    fc.assert(
      fc.property(messagesOf(one.output, usual), (message) => {
        const bytes = toBinary(one.output, message);
        expect(one.read(bytes)).toBeDefined();
        expectSame(one, bytes);
      }),
      { numRuns: 500 },
    );
  });

  test("that is unusual is answered as with a message, or left to it", () => {
    fc.assert(
      fc.property(messagesOf(one.output, unusual), (message) => expectSame(one, toBinary(one.output, message))),
      { numRuns: 500 },
    );
  });

  test("that is damaged, in another order, in parts or of a newer contract is answered as with a message, or left to it", () => {
    const damage = fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }), cut: fc.nat({ max: 2 }) });
    const two = fc.tuple(messagesOf(one.output, usual), messagesOf(one.output, usual));
    fc.assert(
      fc.property(two, fc.array(damage, { maxLength: 3 }), (messages, damages) => {
        let bytes = Buffer.concat(messages.map((message) => toBinary(one.output, message)));
        for (const { at, byte, cut } of damages) {
          if (bytes.length > 0) bytes[at % bytes.length] = byte;
          bytes = bytes.subarray(0, bytes.length - cut);
        }
        expectSame(one, bytes);
      }),
      { numRuns: 2000 },
    );
  });
});

test("what the library refuses is not read", () => {
  const [things] = served as [Served];
  const thing = (...bytes: number[]) => Uint8Array.of(10, bytes.length, ...bytes);
  expect(things.read(thing(8, 1))).toBeDefined();
  for (const bytes of [
    thing(0x32, 1, 0xff), // a text that is no UTF-8
    thing(8), // a number without its end
    thing(0x32, 9, 97), // beyond the end
    thing(0xa2, 1, 1, 0xff), // a header that is no UTF-8
    Uint8Array.of(10),
  ]) {
    expect(things.read(bytes)).toBeUndefined();
    expect(() => fromBinary(things.output, bytes)).toThrow();
  }
});

test("what only the library can judge is left to it", () => {
  const [things] = served as [Served];
  expect(things.read(Uint8Array.of(10, 6, 8, 0xff, 0xff, 0xff, 0xff, 0x0f))).toBeUndefined(); // -1 in 32 bits
  expect(things.read(Uint8Array.of(10, 3, 0x32, 3, 97, 10, 0))).toBeUndefined(); // a text that leaves its message
});

test("messages with fields of any other kind are left to the library", () => {
  const others = library.filter(({ successStatus, location }) => successStatus === 200 && !location);
  const read = others.filter((operation) => shownReader(operation) !== undefined);
  expect(read.map(({ id }) => id)).toEqual(["catalogue"]);
});

test("what was never sent is shown as in a message that is empty", () => {
  for (const one of served) {
    const empty = create(one.output) as Message;
    expect(one.read(new Uint8Array())).toBeDefined();
    expect(answered(one, new Uint8Array())).toEqual(one.answerOf(empty, new Headers(), "/things?a=b"));
    expectSame(one, new Uint8Array());
  }
});

test("a time that was never sent is null where it is the whole answer", () => {
  const time = served.find(({ name }) => name === "getTime") as Served;
  expect(answered(time, new Uint8Array())).toMatchObject({ body: "null" });
});

test("of the names that an enum has for one value, the first is shown", () => {
  const whole = served.find(({ name }) => name === "getWhole") as Served;
  const text = (init: object) =>
    (answered(whole, toBinary(whole.output, create(whole.output, init as never))) as Answer).body;
  expect(text({})).toContain('"shelf":"upper"');
  expect(text({ shelf: 1 })).toContain('"shelf":"lower"');
});
