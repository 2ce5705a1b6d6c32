/**
 * `GET /stored/pet` at the admin port: what the service has stored, as it is, for `npm run doctor`, which can't read a file that
 * the service has open; and `PUT /stored/pet/formats`, by which `npm run data -- migrate up` raises its formats. Both are
 * answered to who proves that they may read the file.
 */
import type { Inspection, Row } from "@petstore/store/rows";
import manifest from "../package.json" with { type: "json" };
import { membersOf } from "../processes/admin/body.ts";
import { type AdminAnswer, type AdminRoutes, problem, Unusable } from "../processes/admin.ts";
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

export function addStored(
  routes: AdminRoutes,
  service: ServiceName,
  dataDir: string,
  inspection: Calls,
  raise: () => Promise<void>,
): void {
  const proven =
    (answer: (body: string, query: URLSearchParams) => Promise<AdminAnswer>) =>
    (body: string, query: URLSearchParams) =>
      isProven(dataDir, query)
        ? answer(body, query)
        : problem(403, "This is for the user of the service: use npm run doctor and npm run data as that user.");
  const show = proven(async (_, query) => {
    const { call, args } = JSON.parse(query.get("q") ?? "{}") as Question;
    if (!calls.includes(call)) throw new Unusable(`q must be a call of ${calls.join(", ")}, as JSON.`);
    const answer = await (inspection[call] as (...args: unknown[]) => Promise<unknown>)(...args);
    return { status: 200, body: { answer: call === "page" || call === "many" ? shown(answer as Row[]) : answer } };
  });
  const raiseFormats = proven(async (body) => {
    const { version } = membersOf(body, { version: "string" });
    if (version !== manifest.version) return problem(409, `This is ${manifest.version}: ask with the same version.`);
    await raise();
    return { status: 200, body: {} };
  });
  routes.set(`GET /stored/${service}`, show);
  routes.set(`PUT /stored/${service}/formats`, raiseFormats);
}

const shown = (rows: readonly Row[]): ShownRow[] =>
  rows.map(({ _id, doc, indexed }) => ({ _id, doc: Buffer.from(doc).toString("base64"), indexed }));
