/**
 * `GET /stored/pet` at the admin port: what the service has stored, as it is, for `npm run doctor`, which can't read a file that
 * the service has open. It is answered to who proves that they may read the file.
 */
import type { Inspection, Row } from "@petstore/store/rows";
import { type AdminRoutes, problem, Unusable } from "../processes/admin.ts";
import type { ServiceName } from "../processes/names.ts";
import { isProven } from "./proof.ts";

type Calls = Pick<Inspection, "page" | "many" | "sequences" | "wrongIndexes">;

/** A call, in the query's `q` as JSON. */
export type Question = {
  readonly [K in keyof Calls]: { readonly call: K; readonly args: Parameters<Calls[K]> };
}[keyof Calls];

/** A row as JSON has it: its document in base64. */
export type ShownRow = Omit<Row, "doc"> & { readonly doc: string };

const calls: readonly string[] = ["page", "many", "sequences", "wrongIndexes"] satisfies (keyof Calls)[];

export function addStored(routes: AdminRoutes, service: ServiceName, dataDir: string, inspection: Calls): void {
  routes.set(`GET /stored/${service}`, async (_, query) => {
    if (!isProven(dataDir, query))
      return problem(403, "This is for the user of the service: use npm run doctor as that user.");
    const { call, args } = JSON.parse(query.get("q") ?? "{}") as Question;
    if (!calls.includes(call)) throw new Unusable(`q must be a call of ${calls.join(", ")}, as JSON.`);
    const answer = await (inspection[call] as (...args: unknown[]) => Promise<unknown>)(...args);
    return { status: 200, body: { answer: call === "page" || call === "many" ? shown(answer as Row[]) : answer } };
  });
}

const shown = (rows: readonly Row[]): ShownRow[] =>
  rows.map(({ _id, doc, indexed }) => ({ _id, doc: Buffer.from(doc).toString("base64"), indexed }));
