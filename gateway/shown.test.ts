/** What the contract's answers are made of is known to the reader that needs no messages. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { operationsOf } from "connect-transcoder";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ListPetsResponseSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { answerer } from "../packages/transcoder/response/answer.ts";
import { shownReader } from "../packages/transcoder/response/shown.ts";
import { messagesOf } from "../packages/transcoder/testdata/messages.ts";
import { publicServices } from "./services.ts";

const operations = publicServices.flatMap(({ desc }) => operationsOf(desc));
const kinds = {
  string: fc.string({ unit: "grapheme" }).filter((text) => text.isWellFormed() && !text.includes("\ufffd")),
  integer: fc.bigInt({ min: 0n, max: 2n ** 49n - 1n }),
  hasNamelessEnumValues: false,
};

const shown = operations.filter(({ successStatus, location }) => successStatus === 200 && !location);
test.each(shown.map((operation) => [operation.id, operation] as const))("an answer of %s", (_, operation) => {
  const { output } = operation.method;
  const answerOf = answerer(operation, { basePath: "" });
  const read = shownReader(operation);
  fc.assert(
    fc.property(messagesOf(output, kinds), (message) => {
      const bytes = toBinary(output, message);
      const text = read?.(bytes) ?? expect.unreachable();
      const answer = answerOf(fromBinary(output, bytes), new Headers(), "/");
      expect(answerOf(text, new Headers(), "/")).toEqual(answer);
    }),
  );
});

test("one that a list is asked for by its id has its own headers, read either way", () => {
  const operation = operations.find(({ id }) => id === "listPets") ?? expect.unreachable();
  const answerOf = answerer(operation, { basePath: "" });
  const message = create(ListPetsResponseSchema, { pets: [{ id: 1n, etag: '"7"' }] });
  const text = shownReader(operation)?.(toBinary(ListPetsResponseSchema, message)) ?? expect.unreachable();
  for (const answer of [message, text]) {
    expect(answerOf(answer, new Headers(), "/pets?id=1", true).headers.etag).toBe('"7"');
    expect(answerOf(answer, new Headers(), "/pets").headers.etag).toBeUndefined();
  }
});
