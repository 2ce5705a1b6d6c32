/** The store of a service that runs on the embedded engine, seen through its admin port. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type Inspection, readRow } from "@petstore/store/rows";
import type { ServiceName } from "../processes/names.ts";
import type { Proof } from "../services/proof.ts";
import type { Question, ShownRow } from "../services/stored.ts";
import { CannotLook } from "./errors.ts";

/** Reading a page may have to wait for other work. In milliseconds. */
const PATIENCE_MS = 30_000;

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
): Promise<Inspection> {
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

  await ask({ call: "sequences", args: [] });
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
    sequences: () => ask({ call: "sequences", args: [] }),
    wrongIndexes: ({ name, indexes }) => ask({ call: "wrongIndexes", args: [{ name, indexes }] }),
  };
}

/** A target has 16 KiB at most. */
const MANY = 200;
