/** The store of a service that runs on the embedded engine, seen through its admin port. */
import { readRow } from "@petstore/store/inspection";
import type { ServiceName } from "../processes/names.ts";
import type { Question, ShownRow } from "../services/stored.ts";
import { CannotLook } from "./errors.ts";
import type { Inspected } from "./look.ts";

/** Reading a page may have to wait for other work. In milliseconds. */
const PATIENCE_MS = 30_000;

/** `urls` are the admin ports where it may be: its own, or that of a petstore in one process. */
export async function inspectLive(service: ServiceName, urls: readonly string[]): Promise<Inspected> {
  let base: string | undefined;
  async function ask<A>({ call, args }: Question): Promise<A> {
    const q = encodeURIComponent(JSON.stringify({ call, args }));
    for (const url of base === undefined ? urls : [base]) {
      const response = await fetch(`${url}/stored/${service}?q=${q}`, {
        signal: AbortSignal.timeout(PATIENCE_MS),
      }).catch(() => undefined);
      if (!response?.ok) continue;
      base = url;
      return ((await response.json()) as { readonly answer: A }).answer;
    }
    throw new CannotLook(
      `The petstore runs, and ${service} shows nothing at its admin port (${urls.join(", ")}): ` +
        "see to PORT_BASE, ADMIN_HOST and ADMIN_PORT, which must be as the petstore has them, or stop it and look again.",
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
