import { statSync, writeFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { directoryForEach } from "../packages/store/fixtures/directory.ts";
import type { AdminAnswer, AdminRoutes } from "../processes/admin.ts";
import { secretFile } from "./proof.ts";
import { addStored } from "./stored.ts";

const directory = directoryForEach();
const secret = "s".repeat(64);

type Route = "GET /stored/pet" | "PUT /stored/pet/formats";

function open(raise = async () => {}) {
  const routes: AdminRoutes = new Map();
  const inspection = {
    page: async (...args: unknown[]) => [{ _id: args.length, doc: Uint8Array.of(1, 2, 3), indexed: { visible: true } }],
    many: async () => [],
    sequences: async () => [["pet", 7] as const],
    wrongIndexes: async () => [],
  };
  addStored(routes, "pet", directory.path, inspection, raise);
  return async (query: Record<string, string>, route: Route = "GET /stored/pet", body = "") =>
    (await routes.get(route)?.(body, new URLSearchParams(query))) as AdminAnswer;
}
const asked = (call: string, ...args: unknown[]) => ({ q: JSON.stringify({ call, args }) });

test("who has put a secret into DATA_DIR is answered", async () => {
  const ask = open();
  writeFileSync(secretFile(directory.path, 12), secret);
  const known = { by: "12", secret };
  expect(await ask({ ...known, ...asked("sequences") })).toEqual({ status: 200, body: { answer: [["pet", 7]] } });
  expect(await ask({ ...known, ...asked("page", "pets", 5) })).toEqual({
    status: 200,
    body: { answer: [{ _id: 2, doc: "AQID", indexed: { visible: true } }] },
  });
  await expect(ask({ ...known, ...asked("close") })).rejects.toThrow(
    "q must be a call of page, many, sequences, wrongIndexes",
  );
});

test.each([
  ["nothing", {}],
  ["another secret", { by: "12", secret: "t".repeat(64) }],
  ["a part of it", { by: "12", secret: "s" }],
  ["the secret of another process", { by: "13", secret }],
  ["the name of another file", { by: "../12", secret }],
  ["an empty secret for an empty file", { by: "14", secret: "" }],
])("who shows %s is refused", async (_, query) => {
  const ask = open();
  writeFileSync(secretFile(directory.path, 12), secret);
  writeFileSync(secretFile(directory.path, 14), "");
  expect(await ask({ ...asked("sequences"), ...query })).toMatchObject({ status: 403 });
  expect(await ask(query, "PUT /stored/pet/formats", "{}")).toMatchObject({ status: 403 });
});

test("formats are raised for who asks with the same version", async () => {
  const raise = vi.fn(async () => {});
  const ask = open(raise);
  writeFileSync(secretFile(directory.path, 12), secret);
  const put = (version: string) => ask({ by: "12", secret }, "PUT /stored/pet/formats", JSON.stringify({ version }));
  expect(await put("0.9.0")).toMatchObject({ status: 409, body: { message: expect.stringContaining("same version") } });
  expect(raise).not.toHaveBeenCalled();
  expect(await put(manifest.version)).toEqual({ status: 200, body: {} });
  expect(raise).toHaveBeenCalledOnce();
});

test("who has put it there as another user is refused", async () => {
  const ask = open();
  const file = secretFile(directory.path, 12);
  writeFileSync(file, secret);
  using _ = vi.spyOn(process as Required<NodeJS.Process>, "getuid").mockReturnValue(statSync(file).uid + 1);
  expect(await ask({ by: "12", secret, ...asked("sequences") })).toMatchObject({ status: 403 });
});
