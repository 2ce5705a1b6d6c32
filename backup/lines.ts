/** Records as lines of JSON, in an order that all stores have: by service, collection and id, and then the sequences. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { Corrupt, type Id } from "@petstore/store/port";
import { encode, type Fields, type Row } from "@petstore/store/rows";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { type AllRecords, Refused } from "./places.ts";
import { type Progress, showProgress } from "./progress.ts";

/** Goes up with the format of an engine, when what is in the records changes. */
const FORMAT = 1;
/** Records that are read or written at once. */
const PAGE = 1_000;

export type Line =
  | { readonly service: ServiceName; readonly collection: string; readonly doc: Readonly<Record<string, unknown>> }
  /** A document that can't be read: its bytes in base64. */
  | { readonly service: ServiceName; readonly collection: string; readonly _id: Id; readonly bson: string }
  | { readonly service: ServiceName; readonly sequence: string; readonly last: number };

/** The first line of a file. */
interface Head {
  readonly petstore: "export";
  readonly format: number;
  readonly id: string;
  readonly instant: string;
  /** About how many records follow, for who shows how far reading is: it is counted before they are read. */
  readonly records: number;
}

/** The last line of a file. */
interface End {
  /** How many lines are between. */
  readonly end: number;
  readonly sha256: string;
}

/** Gives the lines from the first one on, or those beyond the last id of each collection, in pieces. */
export interface Source {
  readonly total: number;
  lines(last?: (service: ServiceName, collection: string) => Promise<Id | undefined>): AsyncIterable<readonly Line[]>;
}

export const idOf = (line: Line): Id =>
  "sequence" in line ? line.sequence : "doc" in line ? (line.doc._id as Id) : line._id;

export const rowOf = (line: Exclude<Line, { sequence: string }>): Row => ({
  _id: idOf(line),
  doc: "doc" in line ? encode(line.doc) : Buffer.from(line.bson, "base64"),
});

/** The members in the same order, whichever engine had them. */
function lineOf(service: ServiceName, collection: string, row: Row, fields: Fields | undefined): Line {
  if (typeof row._id !== "string" && typeof row._id !== "number")
    throw new Corrupt(`${service} has in ${collection} a document that no petstore wrote: ${row._id}. Remove it.`);
  if (!fields) return { service, collection, _id: row._id, bson: Buffer.from(row.doc).toString("base64") };
  const { _id, rev, ...rest } = fields;
  return { service, collection, doc: { _id, rev, ...rest } };
}

export async function linesOf(all: AllRecords): Promise<Source> {
  let total = 0;
  for (const records of all.values())
    for (const name of await records.collections()) total += await records.count(name);
  return {
    total,
    async *lines(last) {
      for (const service of serviceNames) {
        const records = all.get(service);
        if (!records) continue;
        for (const collection of await records.collections()) {
          let after = await last?.(service, collection);
          for (let size = PAGE; size === PAGE; ) {
            const page = await records.page(collection, PAGE, after);
            yield page.map((row) => lineOf(service, collection, row, records.fields(row)));
            after = page.at(-1)?._id;
            size = page.length;
          }
        }
        yield (await records.sequences()).map(([sequence, last]) => ({ service, sequence, last }));
      }
    },
  };
}

/**
 * Writes what opened stores had at an instant into a file, which is there under its name only when it is whole. Resolves to how
 * many records it has of each service and collection.
 */
export async function writeLines(path: string, all: AllRecords, instant: string): Promise<Record<string, number>> {
  const source = await linesOf(all);
  using progress = showProgress("Reading records", [source.total], "records");
  const part = `${path}.part`;
  const hash = createHash("sha256");
  const counts: Record<string, number> = {};
  async function* pieces(): AsyncGenerator<string> {
    const hashed = (piece: string) => {
      hash.update(piece);
      return piece;
    };
    let records = 0;
    const head = { petstore: "export", format: FORMAT, id: randomUUID(), instant, records: source.total } as const;
    yield hashed(textOf(head));
    for await (const lines of source.lines()) {
      yield hashed(lines.map(textOf).join(""));
      for (const line of lines) {
        if (!("collection" in line)) continue;
        const name = `${line.service}/${line.collection}`;
        counts[name] = (counts[name] ?? 0) + 1;
      }
      records += lines.length;
      progress.add(lines.length);
    }
    yield textOf({ end: records, sha256: hash.digest("hex") });
  }
  try {
    await pipeline(pieces, createWriteStream(part, { mode: 0o600, flush: true }));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  await rename(part, path);
  return counts;
}

export interface LinesFile extends Source {
  readonly head: Head;
}

/** Opens a file, of which every byte is checked. Throws `Refused` for one that is damaged, cut short or newer. */
export async function openLines(path: string): Promise<LinesFile> {
  let head: Head | undefined;
  let end: End | undefined;
  let number = 0;
  const hash = createHash("sha256");
  let progress: Progress | undefined;
  try {
    for await (const text of textsOf(path)) {
      number++;
      const value = parsed(text);
      if (!head) {
        head = value as unknown as Head;
        if (head?.petstore !== "export") throw new Refused(`${path} is no export of a petstore.`);
        if (head.format > FORMAT) throw new Refused(`${path} was written by a newer petstore: upgrade this one.`);
        progress = showProgress("Checking records", [head.records], "records");
      } else if (end || !(isLine(value) || isEnd(value))) {
        throw new Refused(`${path} is damaged: line ${number} is not what an export writes. Take another one.`);
      }
      if (isEnd(value)) end = value;
      else hash.update(text).update("\n");
      progress?.add(1);
    }
  } finally {
    progress?.[Symbol.dispose]();
  }
  if (!head || !end) throw new Refused(`${path} was cut short: it has no last line. Take another one.`);
  if (end.sha256 !== hash.digest("hex") || end.end !== number - 2)
    throw new Refused(`${path} is damaged: its contents are not those that its last line tells of. Take another one.`);
  return { head, total: end.end, lines: (last) => linesIn(path, last) };
}

async function* linesIn(path: string, last: Parameters<Source["lines"]>[0]): AsyncGenerator<readonly Line[]> {
  const done = new Map<string, Id | undefined>();
  let page: Line[] = [];
  for await (const text of textsOf(path)) {
    const line = parsed(text);
    if (!isLine(line)) continue;
    if ("collection" in line) {
      const key = `${line.service} ${line.collection}`;
      if (!done.has(key)) done.set(key, await last?.(line.service, line.collection));
      // They are in order, so those up to the last one are there.
      if (done.get(key) !== undefined) {
        if (done.get(key) === idOf(line)) done.set(key, undefined);
        continue;
      }
    }
    page.push(line);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  yield page;
}

/** `readline` ends lines at these two as well, which JSON allows in a text. */
const textOf = (value: Head | Line | End): string =>
  `${JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")}\n`;

const textsOf = (path: string): AsyncIterable<string> =>
  createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isEnd = (value: object | undefined): value is End => value !== undefined && "end" in value;
function isLine(value: Partial<Record<string, unknown>> | undefined): value is Line {
  const { service, collection, sequence, doc, _id, bson, last } = value ?? {};
  if (!serviceNames.some((name) => name === service)) return false;
  if (typeof sequence === "string") return Number.isSafeInteger(last);
  if (typeof collection !== "string") return false;
  const id = doc instanceof Object ? (doc as { _id?: unknown })._id : typeof bson === "string" ? _id : undefined;
  return typeof id === "string" || Number.isSafeInteger(id);
}
