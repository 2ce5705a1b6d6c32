/** The store of a service that runs on the embedded engine, seen through its admin port. */
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, fchownSync, openSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
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

/** Puts a secret into DATA_DIR that only its owner can read, until it is disposed or the process exits. */
export function openProof(dataDir: string): Proof {
  const secret = randomBytes(32).toString("hex");
  // Others may write there, too: what they have put under the name is not written to.
  const by = randomInt(2 ** 47);
  const file = secretFile(dataDir, by);
  const opened = openSync(file, "wx", 0o600);
  const remove = () => rmSync(file, { force: true });
  process.once("exit", remove);
  try {
    writeFileSync(opened, secret);
    // Root asks services that run as another user.
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(join(dataDir, "pet.db"), { throwIfNoEntry: false }) ?? statSync(dataDir);
      fchownSync(opened, uid, gid);
    }
  } finally {
    closeSync(opened);
  }
  return {
    query: `by=${by}&secret=${secret}`,
    [Symbol.dispose]() {
      process.off("exit", remove);
      remove();
    },
  };
}

/** A service has loaded this anyway, and not what only fetch needs. */
async function fetched(url: string, signal: AbortSignal) {
  const request = get(url, { signal });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

/** `urls` are the admin ports where it may be: its own, or that of a petstore in one process. */
export async function inspectLive(
  service: ServiceName,
  urls: readonly string[],
  proof: Proof,
  stop?: AbortSignal,
): Promise<Inspected> {
  let base: string | undefined;
  async function ask<A>({ call, args }: Question): Promise<A> {
    const q = encodeURIComponent(JSON.stringify({ call, args }));
    for (const url of base === undefined ? urls : [base]) {
      const patience = AbortSignal.timeout(PATIENCE_MS);
      const signal = stop ? AbortSignal.any([stop, patience]) : patience;
      const answer = await fetched(`${url}/stored/${service}?${proof.query}&q=${q}`, signal).catch(() => undefined);
      if (answer?.status === 500)
        throw new CannotLook(`${service} could not read what it has stored: its log says why.`);
      if (answer?.status !== 200) continue;
      base = url;
      return (JSON.parse(answer.body) as { readonly answer: A }).answer;
    }
    throw new CannotLook(
      `To look at a petstore that runs: ${service} shows nothing at its admin port (${urls.join(", ")}): ` +
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
