/** However much is stored, a look takes the memory of a batch, and says how far it is. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { deserialize, serialize } from "bson";
import { expect, test } from "vitest";
import { fillShop, QUIET_PORT_BASE } from "./fixtures/shop.ts";

/** DOCTOR_PETS=1000000 tries a million. */
const PETS = Number(process.env.DOCTOR_PETS ?? 60_000);
/** Too little to keep them all, and more than enough for batches. */
const MAX_HEAP_MB = 32;

/** Copies a row so often, under ids of its own. */
function multiply(file: string, table: string, from: number): void {
  using db = new DatabaseSync(file);
  const { doc: bytes, ...row } = db.prepare(`SELECT * FROM "${table}" WHERE _id = ?`).get(from) as {
    doc: Uint8Array;
  };
  const columns = Object.keys(row).filter((column) => column !== "_id");
  const names = ["_id", "doc", ...columns].map((column) => `"${column}"`);
  const insert = db.prepare(`INSERT INTO "${table}" (${names}) VALUES (${names.map(() => "?")})`);
  const doc = deserialize(bytes);
  const values = columns.map((column) => row[column as never]);
  db.exec(`BEGIN; UPDATE "$sequences" SET last = ${PETS + 100}`);
  for (let _id = 101; _id <= PETS + 100; _id++) insert.run(_id, serialize({ ...doc, _id }), ...values);
  db.exec("COMMIT");
}

test(`${PETS} pets with a heap of ${MAX_HEAP_MB} MB`, { timeout: 600_000 }, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "doctor-"));
  try {
    await fillShop({ dataDir, mongodbUri: undefined });
    multiply(join(dataDir, "pet.db"), "pets", 4);
    multiply(join(dataDir, "inventory.db"), "inventory", 4);
    const args = [`--max-old-space-size=${MAX_HEAP_MB}`, "doctor/main.ts", "--json"];
    const env = { PATH: process.env.PATH, DATA_DIR: dataDir, PORT_BASE: QUIET_PORT_BASE };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    expect(JSON.parse(stdout)).toEqual({ findings: [] });
  } finally {
    await rm(dataDir, { recursive: true });
  }
});
