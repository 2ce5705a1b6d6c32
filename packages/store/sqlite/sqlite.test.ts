import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { realTime } from "@petstore/runtime/clock";
import { serialize } from "bson";
import { conformance } from "../conformance/suite.ts";
import { silent } from "../fixtures/silent.ts";
import type { Id } from "../port.ts";
import { openEmbedded } from "./sqlite.ts";

conformance("the embedded engine", async (clock) => {
  const dir = await mkdtemp(join(tmpdir(), "petstore-"));
  const open = () =>
    openEmbedded(join(dir, "pet.db"), {
      ...realTime,
      clock,
      log: silent,
      onFatal: (error) => {
        throw error;
      },
    });
  let store = await open();
  return {
    store,
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    async spoil(collection, docs) {
      await store.close();
      using db = new DatabaseSync(join(dir, "pet.db"));
      const replace = db.prepare(`UPDATE "${collection}" SET doc = ? WHERE _id = ?`);
      db.exec("BEGIN");
      for (const doc of docs) replace.run(serialize(doc, { ignoreUndefined: true }), doc._id as Id);
      db.exec("COMMIT");
    },
    async end() {
      await store.close();
      await rm(dir, { recursive: true });
    },
  };
});
