import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conformance } from "./conformance.ts";
import { openEmbedded } from "./embedded.ts";

conformance("the embedded engine", async (clock) => {
  const dir = await mkdtemp(join(tmpdir(), "petstore-"));
  const open = () =>
    openEmbedded(join(dir, "pet.db"), {
      clock,
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
    async end() {
      await store.close();
      await rm(dir, { recursive: true });
    },
  };
});
