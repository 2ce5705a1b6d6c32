/**
 * A member that is added as CONTRIBUTING.md says, to the contract and the model and nowhere else, takes part in everything:
 * tried in a copy of the petstore, in every record.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const GENERATE = {
  version: "v2",
  plugins: [
    {
      local: join(root, "node_modules/.bin/protoc-gen-es"),
      out: "proto/gen",
      opt: [
        "target=ts",
        "import_extension=ts",
        "erasable_syntax=true",
        "map_imports=buf/validate/:@bufbuild/protovalidate/gen",
        "map_imports=google/api/:connect-transcoder/gen",
        "map_imports=transcoder/:connect-transcoder/gen",
      ],
    },
  ],
};
const SAID = "optional string colour = 100 [(transcoder.v1.field).clearable = true];";
const SHOWN = "optional string colour = 100;";
const FIELD = "colour: s.string.optional";

const records = {
  category: { messages: { NewCategory: SAID, Category: SHOWN }, after: "description: s.string.optional" },
  pet: { messages: { NewPet: SAID, Pet: SHOWN }, after: "factsSchema = s.object({ name: s.string" },
  order: { messages: { Order: SAID }, after: "shipDate: momentSchema.optional" },
  inventory: { messages: { InventoryUpdate: SAID, InventoryItem: SHOWN }, after: "{ quantity: s.int" },
};

let copy: string;
let found: {
  readonly changes: Record<string, unknown>;
  readonly moved: unknown;
  readonly keys: Record<string, unknown>;
};

function edit(file: string, place: string, added: string): void {
  const text = readFileSync(file, "utf8");
  expect(text.split(place).length, `${place} in ${file}`).toBe(2);
  writeFileSync(file, text.replace(place, place + added));
}

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "petstore-"));
  for (const name of ["package.json", "buf.yaml", "packages", "processes", "proto", "services", "test"])
    cpSync(join(root, name), join(copy, name), { recursive: true });
  // What is installed, but the copy's own packages.
  mkdirSync(join(copy, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules")))
    if (!/^(@petstore|connect-transcoder)$/.test(name))
      symlinkSync(join(root, "node_modules", name), join(copy, "node_modules", name));
  cpSync(join(root, "node_modules/@petstore"), join(copy, "node_modules/@petstore"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  symlinkSync("../packages/transcoder", join(copy, "node_modules/connect-transcoder"));
  const protos = Object.entries(records).map(([name, { messages, after }]) => {
    const proto = `proto/petstore/${name}/v1/${name}.proto`;
    for (const [message, field] of Object.entries(messages)) edit(join(copy, proto), `message ${message} {`, field);
    edit(join(copy, `services/${name}/model.ts`), after, `, ${FIELD}`);
    return ["--path", proto];
  });
  const buf = join(root, "node_modules/.bin/buf");
  execFileSync(buf, ["generate", "proto", "--template", JSON.stringify(GENERATE), ...protos.flat()], { cwd: copy });
  found = JSON.parse(
    execFileSync(process.execPath, [join(copy, "test/project/added-member.ts")], { encoding: "utf8" }),
  );
}, 120_000);
afterAll(() => rmSync(copy, { recursive: true, force: true }));

describe("a PATCH of the new member alone changes it and the entity tag, in", () => {
  test.each(Object.keys(records))("%s", (record) => {
    const first = record === "inventory" ? null : "red";
    expect(found.changes[record]).toEqual({
      created: [first, '"1"'],
      changed: ["blue", '"2"'],
      read: ["blue", '"2"'],
      repeated: ["blue", '"2"'],
      removed: [null, '"3"'],
      gone: [null, '"3"'],
    });
  });
});

test("it is changed and removed together with what other services have a say in", () => {
  const etag = expect.any(String);
  expect(found.moved).toEqual([
    ["grey", etag],
    [null, etag],
    [null, etag],
  ]);
});

test("a key is replayed for the same one, and refused for another", () => {
  const again = [true, "red", expect.stringContaining("another body")];
  expect(found.keys).toEqual({ ofCategory: again, ofPet: again, ofOrder: again });
});
