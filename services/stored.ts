/**
 * `GET /stored/pet` at the admin port: what the service has stored, as it is, for `npm run doctor`, which can't read a file that
 * the service has open. It is answered to the service's own user, who could read the file, and to root: who asks has put a
 * secret into DATA_DIR that belongs to that user, and that nobody else can read.
 */
import { timingSafeEqual } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Inspection, Row } from "@petstore/store/inspection";
import { type AdminRoutes, problem, Unusable } from "../processes/admin.ts";
import type { ServiceName } from "../processes/names.ts";

type Calls = Pick<Inspection, "page" | "many" | "last" | "wrongIndexes">;

/** A call, in the query's `q` as JSON. */
export type Question = {
  readonly [K in keyof Calls]: { readonly call: K; readonly args: Parameters<Calls[K]> };
}[keyof Calls];

/** A row as JSON has it: its document in base64. */
export type ShownRow = Omit<Row, "doc"> & { readonly doc: string };

const calls: readonly string[] = ["page", "many", "last", "wrongIndexes"] satisfies (keyof Calls)[];

/** Where a process that calls itself `by` puts its secret. */
export const secretFile = (dataDir: string, by: number): string => join(dataDir, `doctor-${by}.secret`);
const SECRET_LENGTH = 64;

export function addStored(routes: AdminRoutes, service: ServiceName, dataDir: string, inspection: Calls): void {
  routes.set(`GET /stored/${service}`, async (_, query) => {
    if (!mayRead(dataDir, query))
      return problem(403, "This is for the user of the service: use npm run doctor as that user.");
    const { call, args } = JSON.parse(query.get("q") ?? "{}") as Question;
    if (!calls.includes(call)) throw new Unusable(`q must be a call of ${calls.join(", ")}, as JSON.`);
    const answer = await (inspection[call] as (...args: unknown[]) => Promise<unknown>)(...args);
    return { status: 200, body: { answer: call === "page" || call === "many" ? shown(answer as Row[]) : answer } };
  });
}

function mayRead(dataDir: string, query: URLSearchParams): boolean {
  const secret = Buffer.from(query.get("secret") ?? "");
  try {
    const file = secretFile(dataDir, Number(query.get("by")));
    // Who may write into DATA_DIR as another user could not read the service's files.
    if (lstatSync(file).uid !== (process.getuid?.() ?? 0)) return false;
    const known = readFileSync(file);
    return known.length === SECRET_LENGTH && secret.length === SECRET_LENGTH && timingSafeEqual(secret, known);
  } catch {
    return false;
  }
}

const shown = (rows: readonly Row[]): ShownRow[] =>
  rows.map(({ _id, doc, indexed }) => ({ _id, doc: Buffer.from(doc).toString("base64"), indexed }));
