/** The store of a service that runs on the embedded engine, seen through its admin port. */
import { randomBytes } from "node:crypto";
import { chownSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readRow } from "@petstore/store/inspection";
import type { ServiceName } from "../processes/names.ts";
import { type Question, type ShownRow, secretFile } from "../services/stored.ts";
import { CannotLook } from "./errors.ts";
import type { Inspected } from "./look.ts";

/** Reading a page may have to wait for other work. In milliseconds. */
const PATIENCE_MS = 30_000;

/** By which the services know that this process may read what they have stored. */
export interface Proof extends Disposable {
  readonly query: string;
}

/** Puts a secret into DATA_DIR that only its owner can read. */
export function openProof(dataDir: string): Proof {
  const secret = randomBytes(32).toString("hex");
  const file = secretFile(dataDir, process.pid);
  writeFileSync(file, secret, { mode: 0o600 });
  const { uid, gid } = statSync(dataDir);
  // Another user's only if root asks, for services that run as that user.
  if (uid !== process.getuid?.()) chownSync(file, uid, gid);
  return { query: `by=${process.pid}&secret=${secret}`, [Symbol.dispose]: () => rmSync(file, { force: true }) };
}

/** `urls` are the admin ports where it may be: its own, or that of a petstore in one process. */
export async function inspectLive(service: ServiceName, urls: readonly string[], proof: Proof): Promise<Inspected> {
  let base: string | undefined;
  async function ask<A>({ call, args }: Question): Promise<A> {
    const q = encodeURIComponent(JSON.stringify({ call, args }));
    for (const url of base === undefined ? urls : [base]) {
      const response = await fetch(`${url}/stored/${service}?${proof.query}&q=${q}`, {
        signal: AbortSignal.timeout(PATIENCE_MS),
      }).catch(() => undefined);
      if (!response?.ok) continue;
      base = url;
      return ((await response.json()) as { readonly answer: A }).answer;
    }
    throw new CannotLook(
      `The petstore runs, and ${service} shows nothing at its admin port (${urls.join(", ")}): ` +
        "see to PORT_BASE, ADMIN_HOST and ADMIN_PORT, which must be as the petstore has them, and look as its user; or stop it.",
    );
  }
  const rows = async (question: Question) =>
    (await ask<ShownRow[]>(question)).map(({ doc, ...row }) => ({ ...row, doc: Buffer.from(doc, "base64") }));

  await ask({ call: "last", args: [service] });
  return {
    // JSON has no undefined.
    page: (collection, limit, after) =>
      rows({ call: "page", args: after === undefined ? [collection, limit] : [collection, limit, after] }),
    many: async (collection, ids) => {
      const found = [];
      for (let i = 0; i < ids.length; i += MANY)
        found.push(...(await rows({ call: "many", args: [collection, ids.slice(i, i + MANY)] })));
      return found;
    },
    read: readRow,
    last: (sequence) => ask({ call: "last", args: [sequence] }),
    wrongIndexes: ({ name, indexes }) => ask({ call: "wrongIndexes", args: [{ name, indexes }] }),
  };
}

/** A target has 16 KiB at most. */
const MANY = 200;
