import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test, vi } from "vitest";
import { compileLibrary, compileProtos } from "../fixtures/compile.ts";
import { MAX_PATHS } from "./mask.ts";
import { curtail, prepareValidation, validate } from "./validate.ts";

vi.mock("@bufbuild/protovalidate", async (load) => {
  const actual = await load<typeof import("@bufbuild/protovalidate")>();
  return { ...actual, createValidator: vi.fn(actual.createValidator) };
});

/** A message with a predefined rule of its project, whose extension has the same number in every project. */
function messageWithRule(suffix: string): DescMessage {
  const registry = compileProtos({
    "rules.proto": `edition = "2023"; package acme; import "buf/validate/validate.proto";
      extend buf.validate.StringRules {
        bool polite = 80001 [(buf.validate.predefined).cel = {
          id: "string.polite" message: "must end with ${suffix}" expression: "this.endsWith('${suffix}')"
        }];
      }`,
    "letter.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto"; import "rules.proto";
      message Letter {
        string text = 1 [(buf.validate.field).string.(acme.polite) = true];
        string sender = 2 [(buf.validate.field).string.max_len = 9];
      }`,
  });
  return registry.getMessage("acme.Letter") as DescMessage;
}

test("rules that a project predefines are found in its own files, and are no other project's", async () => {
  const problems = (desc: DescMessage, text: string) =>
    validate(desc, create(desc, { text } as never)).map(({ message }) => message);
  const [please, thanks] = [messageWithRule("please"), messageWithRule("thanks")];
  await prepareValidation([please, thanks]);
  expect(problems(please, "a book, please")).toEqual([]);
  expect(problems(please, "a book, thanks")).toEqual(["must end with please"]);
  expect(problems(thanks, "a book, thanks")).toEqual([]);
  expect(problems(thanks, "a book, please")).toEqual(["must end with thanks"]);
});

test("rules are compiled once for all files whose rules are known", async () => {
  const plain = compileProtos({
    "note.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto";
      message Note { string text = 1 [(buf.validate.field).string.min_len = 5]; }`,
  }).getMessage("acme.Note") as DescMessage;
  const polite = messageWithRule("please");
  await prepareValidation([polite, plain]);
  vi.mocked(createValidator).mockClear();
  expect(validate(plain, create(plain, { text: "long" } as never))).toHaveLength(1);
  expect(createValidator).not.toHaveBeenCalled();
});

test.each([
  "optional string text = 1 [(buf.validate.field).string.pattern = '(?=a)']",
  "repeated string text = 1 [(buf.validate.field).repeated.items.string.pattern = '(?=a)']",
  "map<string, string> text = 1 [(buf.validate.field).map.keys.string.pattern = '(?=a)']",
  "optional bytes text = 1 [(buf.validate.field).bytes.pattern = '(?=a)']",
])("a pattern that there is not is found before any value comes: %s", async (field) => {
  const note = compileProtos({
    "note.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto";
      message Note { Within within = 1; }
      message Within { ${field}; }`,
  }).getMessage("acme.Note") as DescMessage;
  await expect(prepareValidation([note])).rejects.toThrow(/field acme.Within.text: .*`\(\?=`/);
});

describe("an update mask", () => {
  const registry = compileProtos({
    "update.proto": `syntax = "proto3"; package acme;
      import "buf/validate/validate.proto";
      import "google/protobuf/field_mask.proto";
      message Pet {
        string name = 1 [(buf.validate.field).required = true];
        option (buf.validate.message).cel = {
          id: "pet.named" message: "must not be called by its house" expression: "this.name == '' || this.name != this.house"
        };
        oneof home { option (buf.validate.oneof).required = true; string kennel = 2; string house = 3; }
      }
      message UpdateRequest { Pet pet = 1 [
        (buf.validate.field).required = true,
        (buf.validate.field).cel = { id: "pet.short" message: "must be short" expression: "size(this.name) < 20" }
      ]; google.protobuf.FieldMask update_mask = 2; }
      message ReadRequest { Pet like = 1; google.protobuf.FieldMask read_mask = 2; }`,
  });
  const [UpdateRequest, ReadRequest] = ["acme.UpdateRequest", "acme.ReadRequest"].map(
    (name) => registry.getMessage(name) as DescMessage,
  ) as [DescMessage, DescMessage];
  const problems = (desc: DescMessage, init: object) =>
    validate(desc, create(desc, init as never)).map(({ message }) => message);

  test("that names no field of a oneof leaves alone that one of them has to be set", async () => {
    await prepareValidation([UpdateRequest]);
    const broken = (...paths: string[]) => problems(UpdateRequest, { pet: { name: "Rex" }, updateMask: { paths } });
    expect(broken("name")).toEqual([]);
    expect(broken("name", "house")).toEqual(["exactly one field is required in oneof", "must have a value"]);
  });

  test("leaves rules for the whole resource to whoever holds it, but not that there has to be one", async () => {
    await prepareValidation([UpdateRequest]);
    const pet = { name: "Tara", home: { case: "house", value: "Tara" } };
    expect(problems(UpdateRequest, { pet })).toEqual(["must not be called by its house"]);
    expect(problems(UpdateRequest, { pet, updateMask: { paths: ["name"] } })).toEqual([]);
    expect(problems(UpdateRequest, { updateMask: { paths: ["name"] } })).toEqual(["value is required"]);
    const long = { ...pet, name: "a name of many letters" };
    expect(problems(UpdateRequest, { pet: long })).toEqual(["must be short"]);
    expect(problems(UpdateRequest, { pet: long, updateMask: { paths: ["house"] } })).toEqual([]);
  });

  test("that names all fields leaves nothing to others", async () => {
    await prepareValidation([UpdateRequest]);
    const updateMask = { paths: ["name", "kennel", "house"] };
    const pet = { name: "Tara", home: { case: "house", value: "Tara" } };
    expect(problems(UpdateRequest, { pet, updateMask })).toContain("must not be called by its house");
    const long = { ...pet, name: "a name of many letters" };
    expect(problems(UpdateRequest, { pet: long, updateMask })).toContain("must be short");
  });

  test("is the field update_mask: what else names fields is no concern of the rules", async () => {
    await prepareValidation([ReadRequest]);
    expect(problems(ReadRequest, { like: {}, readMask: { paths: ["pets.name"] } })).toEqual([
      "value is required",
      "exactly one field is required in oneof",
    ]);
  });
});

const messageOf = (name: string) => compileLibrary().getMessage(`foreign.library.v1.${name}`) as DescMessage;
const [ListBooks, ChangeBook] = ["ListBooksRequest", "ChangeBookRequest"].map(messageOf) as [DescMessage, DescMessage];
type Fields = Record<string, unknown>;
const make = (desc: DescMessage, init: Fields) => create(desc, init as never) as Message & Fields;
const note = (text: string) => (curtail(ChangeBook, make(ChangeBook, { note: { text, page: 7n } })) as Fields).note;

test("leaves a message alone that fits", () => {
  const fits = make(ChangeBook, {
    note: { text: "\u{1f415}".repeat(5), words: Array(5000).fill("unlimited") },
    updateMask: { paths: Array(MAX_PATHS).fill("text") },
  });
  expect(curtail(ChangeBook, fits)).toBe(fits);
});

test("leaves one unit too many, and the message that was given as it was", () => {
  const given = make(ListBooks, { edition: Array(5000).fill(1n), title: "x".repeat(5000), limit: 3 });
  const lengths = ({ edition, title }: Fields) => [(edition as unknown[]).length, (title as string).length];
  const cut = curtail(ListBooks, given);
  expect([...lengths(cut), cut.limit]).toEqual([101, 6, 3]);
  expect(lengths(given)).toEqual([5000, 5000]);
  expect(lengths(curtail(ListBooks, make(ListBooks, { edition: Array(101).fill(1n), title: "" })))).toEqual([101, 0]);
});

test("cuts between characters, also in messages within", () => {
  expect(note("\u{1f415}".repeat(5000))).toMatchObject({ text: "\u{1f415}".repeat(6) });
  expect(note(`x${"\u{1f415}".repeat(5000)}`)).toMatchObject({ text: `x${"\u{1f415}".repeat(5)}` });
  expect(note("x".repeat(5000))).toMatchObject({ text: "x".repeat(6), page: 7n });
  expect(note("x".repeat(6))).toMatchObject({ text: "x".repeat(6) });
});
