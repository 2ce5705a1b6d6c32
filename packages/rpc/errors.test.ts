import { create, createFileRegistry, type DescEnum } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createErrorCatalogue } from "./errors.ts";
import { ReasonSchema } from "./fixtures/library.ts";

const library = { system: "the library", grpcCode: () => "NOT_FOUND" };
const { rpcError, reasonOf } = createErrorCatalogue<"BOOK_NOT_FOUND">(ReasonSchema, { ...library, domain: "library" });

test("an error has the code of its reason, the reason itself, and its cause inside", () => {
  const cause = new Error("why");
  const error = rpcError("BOOK_NOT_FOUND", "There is no book 7.", cause, { id: "7" });
  expect([error.code, error.rawMessage, error.cause]).toEqual([Code.NotFound, "There is no book 7.", cause]);
  expect(reasonOf(error)).toMatchObject({ reason: "BOOK_NOT_FOUND", domain: "library", metadata: { id: "7" } });
});

test("a reason that somebody else named does not count", () => {
  const elsewhere = createErrorCatalogue(ReasonSchema, { ...library, domain: "elsewhere" });
  expect(reasonOf(elsewhere.rpcError("UNAVAILABLE", "x"))).toBeUndefined();
});

test("a catalogue without a reason that this package gives is refused by the name of what it lacks", () => {
  const value = ReasonSchema.values
    .filter(({ localName }) => localName !== "OVERLOADED")
    .map(({ name }, number) => ({ name, number }));
  const file = create(FileDescriptorProtoSchema, { name: "a.proto", enumType: [{ name: "Reason", value }] });
  const reasons = createFileRegistry(file, () => undefined).getEnum("Reason") as DescEnum;
  expect(() => createErrorCatalogue(reasons, { ...library, domain: "library" })).toThrow("Reason lacks OVERLOADED.");
});
