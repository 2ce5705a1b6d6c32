/** Requests are judged as protovalidate would judge them, which no process of the petstore has to load for it. */
import { create, type Message, toJson } from "@bufbuild/protobuf";
import { violationsToProto as protoByLibrary, type Violation } from "@bufbuild/protovalidate";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { messagesOf } from "../../packages/transcoder/fixtures/messages.ts";
import { commonCheck } from "../../packages/transcoder/validation/common-rules.ts";
import { judge } from "../../packages/transcoder/validation/protovalidate.ts";
import { violationsToProto } from "../../packages/transcoder/validation/violation.ts";
import { contractServices } from "./contract-services.ts";

const around = (limit: number): number[] => [limit - 1, limit, limit + 1];
const anyOf = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

/** What patterns and lists of the contract tell apart. */
const words = [
  ...[
    "",
    " ",
    "\t\u3000",
    "x",
    "a b",
    "\0",
    "\u00a0x",
    "\u{1f415}",
    "\ud800",
    "é\u007f",
    "!",
    "~",
    "id",
    "-id",
    "petId",
  ],
  ...["*", '"1"', 'W/"1"', '"1", W/"2" ,,"3"', ", \t*", '"', '"1""2"', '"\u00ff"', '"\u0100"', ' , "1" ,'],
];
/** Every length that the contract allows at most, in characters of one and of two units. */
const sizedTexts = fc
  .tuple(anyOf(["x", " ", "\u{1f415}"]), anyOf([64, 200, 255, 512, 2000, 2048, 4096].flatMap(around)))
  .map(([character, length]) => character.repeat(length));
const mixedTexts = fc.array(anyOf(words), { maxLength: 4 }).map((parts) => parts.join(""));

const bordering = {
  string: fc.oneof(anyOf(words), sizedTexts, mixedTexts, fc.string({ unit: "binary" })),
  integer: fc.oneof(fc.bigInt(0n, 3n), anyOf([-(2n ** 63n), -1n, 2n ** 31n - 1n, 2n ** 63n - 1n])),
  hasNamelessEnumValues: true,
  length: fc.oneof(fc.nat(3), anyOf([100, 1000].flatMap(around))),
  timestamp: fc.record({
    seconds: anyOf([-62_135_596_800n, 0n, 253_402_300_799n].flatMap((limit) => [limit - 1n, limit, limit + 1n])),
    nanos: anyOf([0, 1, 999_999_999, -1, 1_000_000_000]),
  }),
};

const inputs = new Map(contractServices.flatMap(({ methods }) => methods.map(({ input }) => [input.typeName, input])));
const broken = new Set<string>();

test.each([...inputs])("%s", (_, desc) => {
  const check = commonCheck(desc) ?? expect.unreachable();
  const compare = (message: Message) => {
    const expected = judge(desc, message) as readonly Violation[];
    expect(toJson(ViolationsSchema, violationsToProto(check(message)))).toEqual(
      toJson(ViolationsSchema, protoByLibrary([...expected])[0]),
    );
    for (const { ruleId } of expected) broken.add(ruleId);
  };
  compare(create(desc));
  // Always the same messages, for every rule has to come up.
  fc.assert(fc.property(messagesOf(desc, bordering), compare), { numRuns: 150, seed: 1 });
});

test("among them every rule of the contract was broken", () => {
  expect([...broken].sort()).toEqual([
    ...["enum.defined_only", "enum.not_in", "int32.gt", "int32.gte", "int64.gt", "repeated.max_items", "required"],
    ...["string.entity_tags", "string.idempotency_key", "string.in", "string.max_len", "string.min_len"],
    ...["string.no_nul", "string.not_blank", "timestamp.gte_lte"],
  ]);
});
