import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { PetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import { checkPreconditions, type Preconditions, storedId, succeed, toEtag } from "./record.ts";

const judge = (condition: Preconditions, version = 3) => {
  try {
    checkPreconditions(condition, version);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ reason: "ETAG_MISMATCH" });
    return false;
  }
};

describe("If-Match", () => {
  const holds = (etag: string | undefined) => judge({ etag });
  test.each([undefined, "*", " * ", '"3"', '"1", "3"', 'W/"9", "3"', ',"3"'])("%s holds", (condition) => {
    expect(holds(condition)).toBe(true);
  });
  test.each(['"2"', '"33"', 'W/"3"', '"1","2"', '"a,"', '"W/"'])("%s does not", (condition) => {
    expect(holds(condition)).toBe(false);
  });
  test.each(['W/"3"', 'W/"2", W/"3"', '"2",W/"3"'])(
    "%s is told that a weak tag never matches, and why it is one",
    (etag) => {
      expect(() => checkPreconditions({ etag }, 3)).toThrow(
        'The record is at revision "3" now. A weak tag (W/) never matches here. A proxy that compresses answers makes tags weak: send it without the W/.',
      );
    },
  );
  test("what is only quoted like a weak tag is stale", () => {
    expect(() => checkPreconditions({ etag: '"W/"' }, 3)).toThrow("Read it and try again.");
  });
});

describe("If-None-Match", () => {
  const holds = (ifNoneMatch: string | undefined) => judge({ ifNoneMatch });
  test.each([undefined, '"2"', '"33"', 'W/"33"', '"1","2"', '"a,"', '"W/"', '""'])("%s holds", (condition) => {
    expect(holds(condition)).toBe(true);
  });
  test.each(["*", " * ", '"3"', '"1", "3"', 'W/"3"', 'W/"9", W/"3"', ',"3"'])("%s does not", (condition) => {
    expect(holds(condition)).toBe(false);
  });
  test("is judged after If-Match, and both have to hold", () => {
    expect(judge({ etag: '"3"', ifNoneMatch: '"2"' })).toBe(true);
    expect(judge({ etag: '"3"', ifNoneMatch: "*" })).toBe(false);
    expect(() => checkPreconditions({ etag: '"2"', ifNoneMatch: "*" }, 3)).toThrow("Read it and try again");
  });
});

test("ids that were never assigned name nothing", () => {
  expect([1n, 2n ** 53n - 1n].map(storedId)).toEqual([1, Number.MAX_SAFE_INTEGER]);
  expect([0n, -1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)].map(storedId)).toEqual(Array(5).fill(undefined));
});

test("a version moves if and only if the view does", () => {
  const doc = { version: 4, name: "Rex", secret: 1 };
  const view = ({ name, version }: typeof doc) => create(PetSchema, { name, etag: toEtag(version) });
  expect(succeed(doc, { name: "Rex" }, view)).toEqual(doc);
  expect(succeed(doc, { secret: 2 }, view)).toEqual({ ...doc, secret: 2 });
  expect(succeed(doc, { name: "Max" }, view)).toEqual({ ...doc, name: "Max", version: 5 });
});
