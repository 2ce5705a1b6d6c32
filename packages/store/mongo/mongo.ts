/**
 * The engine on MongoDB: any number of processes may share its data. A call is answered once what the answer says has
 * reached the disks of a majority of the replica set.
 */
import "./driver-on-demand.ts";
import { randomBytes } from "node:crypto";
import { checkId } from "../document/codec.ts";
import { viewOf } from "../document/fold.ts";
import { type Admission, createAdmission, type Queues } from "../engine/admission.ts";
import { checkDeclaration, createCollections, type Declaration, indexedFields } from "../engine/collections.ts";
import {
  attemptsAt,
  checkNextId,
  checkPrefixQuery,
  checkQuery,
  type PrefixScan,
  readable,
  reporting,
  type Scan,
  tooMany,
} from "../engine/queries.ts";
import type { StoreOptions } from "../open.ts";
import {
  type CallOptions,
  type Changes,
  type Collection,
  Corrupt,
  type Doc,
  type Id,
  type Indexes,
  type Store,
  Unavailable,
  UnsupportedFormat,
} from "../port.ts";
import { createChanges, createPerKeyQueue } from "./change.ts";
import { type ChangesParts, type MongoChanges, mongoChanges } from "./changes.ts";
import { openClients } from "./clients.ts";
import { connect } from "./connect.ts";
import { byMajority, databaseName, FORMAT, formatProblem, openDatabase, type Raw } from "./database.ts";
import { type Call, type Run, retryUntilDeadline, withDeadline, withTimeout } from "./deadline.ts";
import { createLists, type IndexBuilds, indexBuilds } from "./lists.ts";
import { type Operation, readStored, type Stored } from "./operation-log.ts";
import { knownDocuments, pointReads } from "./reads.ts";
import { createSequences } from "./sequences.ts";
import { createWriters } from "./writes.ts";

export { sharedClients } from "./clients.ts";
export { databaseName } from "./database.ts";

type Options = Pick<StoreOptions, "clock" | "random" | "sleep" | "log" | "waitsFor" | "onCorrupt" | "version">;
export interface MongoOptions extends Options {
  /** By default each store has clients of its own. */
  readonly openClients?: typeof openClients | undefined;
}

/**
 * Opens the database of one service, and waits for MongoDB if need be.
 * Throws `UnusableServer` or `UnsupportedFormat`, with a message for the operator.
 */
export async function openMongo(uri: string, service: string, options: MongoOptions): Promise<Store> {
  const { clock, log } = options;
  const report = reporting(log, clock, options.onCorrupt);
  const clients = (options.openClients ?? openClients)(uri, options.version);
  const { calls, hasSeveralMembers, turns } = clients;
  const database = openDatabase(calls, databaseName(uri, service), hasSeveralMembers);
  /** The database on the client without a socket timeout. */
  const patient = () => clients.patient().db(database.db.databaseName, byMajority);
  const about = database.db.collection<{ _id: string; format: number }>("_petstore");

  /** Also checks whether the user may write. */
  const checkFormat = async () => {
    const claim = { $setOnInsert: { format: FORMAT } };
    const options = { upsert: true, returnDocument: "after" } as const;
    const found = await withTimeout("repeatable", about.findOneAndUpdate({ _id: "format" }, claim, options));
    const problem = formatProblem(database.db.databaseName, found?.format ?? FORMAT);
    if (problem !== undefined) throw new UnsupportedFormat(problem);
  };
  try {
    await connect(calls, checkFormat, options);
  } catch (error) {
    await clients.close();
    throw error;
  }

  let closed = false;
  const underWay = new Set<Promise<unknown>>();
  const run: Run = (callOptions = {}, work, signal) => {
    if (closed) return Promise.reject(new Unavailable(false, new Error("the store is closed")));
    const { progress } = callOptions;
    const asked = progress?.seen === undefined ? undefined : progress;
    if (asked?.seen) database.follow(asked.seen);
    const answer = withDeadline(callOptions, clock, work, signal);
    underWay.add(answer);
    const settle = () => {
      if (asked) asked.seen = database.seen();
      underWay.delete(answer);
    };
    answer.then(settle, settle);
    return answer;
  };

  const admission = createAdmission();
  const process = randomBytes(9).toString("base64url");
  let operations = 0;
  const sequences = createSequences(database, options, log);
  const all: MongoChanges[] = [];

  async function openCollection(declaration: Declaration): Promise<unknown> {
    checkDeclaration(declaration);
    const indexes = indexBuilds(database.db, patient, declaration, options);
    await indexes.build();
    const parts = { declaration, database, streams: patient, turns, timing: options, run, report };
    const changes = mongoChanges(parts);
    all.push(changes);
    const nextOperation = () => ({ by: process, number: ++operations });
    return mongoCollection({ ...parts, changes, indexes, nextOperation, admission });
  }

  const collection = createCollections(openCollection);
  return {
    collection: (schema) =>
      closed ? Promise.reject(new Unavailable(false, new Error("the store is closed"))) : collection(schema),
    nextId: (sequence, callOptions) =>
      admission.read(callOptions, () =>
        run(callOptions, async (call) => {
          checkNextId(sequence, callOptions);
          return sequences.next(sequence, call, callOptions?.above);
        }),
      ),
    ping: (callOptions) =>
      run(callOptions, async (call) => {
        const level = database.hasSeveralMembers() ? "linearizable" : "majority";
        await retryUntilDeadline(call, options, async () => {
          const limits = { readConcern: { level }, maxTimeMS: Math.max(1, Math.ceil(call.remaining())) } as const;
          const found = await withTimeout("repeatable", about.findOne({ _id: "format" }, limits));
          // Dropped with its database. Without it, a version with another format would take this data for its own.
          if (!found) await checkFormat();
        });
      }),
    async close() {
      closed = true;
      for (const changes of all) changes.end();
      await Promise.allSettled(underWay);
      await sequences.close();
      await clients.close();
    },
  };
}

interface CollectionParts extends ChangesParts {
  readonly changes: MongoChanges;
  readonly indexes: IndexBuilds;
  readonly nextOperation: () => Operation;
  readonly admission: Admission;
}

function mongoCollection<T extends Doc, I extends Indexes<T>>(parts: CollectionParts): Collection<T, I> {
  const { declaration, database, changes, indexes, timing, run, admission, report } = parts;
  const queues: Queues = new Map();
  const read: Run = (options, work) => admission.read(options, () => run(options, work, options?.signal));
  const raw: Raw = database.db.collection(declaration.name);
  const decoded = (bytes: Uint8Array) => readStored<T>(bytes, declaration);
  const known = knownDocuments(decoded);
  const reads = pointReads(database, raw, known);
  const list = createLists(database, raw);
  const keys = indexedFields(declaration);
  const openWriter = createWriters(database, raw);
  const view = viewOf<T>(declaration);
  const { change, remove } = createChanges<T>({ ...parts, keys, view, raw, reads, known, openWriter });
  const queue = createPerKeyQueue(change);

  const changing = <R>(id: Id, options: CallOptions | undefined, work: (call: Call) => Promise<R>): Promise<R> =>
    admission.change(queues, id, options, () =>
      run(options, async (call) => {
        checkId(id);
        return work(call);
      }),
    );
  const readOrError = (id: Id, call: Call) =>
    reads.read(id, [call]).catch((error: unknown) => {
      if (error instanceof Corrupt) return error;
      throw error;
    });
  const docOrThrow = (found: Stored<T> | Corrupt): T => {
    if (found instanceof Corrupt) throw found;
    return found.doc;
  };
  const docOf = (bytes: Uint8Array): T => decoded(bytes).doc;

  async function page(scan: Scan | PrefixScan, call: Call, strict = false): Promise<T[]> {
    // Each size reads from the start again: the `_id` of a document that can't be read may be no place to continue from.
    for (const limit of attemptsAt(scan.limit)) {
      const found = await retryUntilDeadline(call, timing, () =>
        indexes.withIndexes(() => list({ ...scan, limit }, call)),
      );
      const docs = strict ? found.map(docOf) : readable(found, docOf, report);
      if (docs.length >= scan.limit || found.length < limit) return docs.slice(0, scan.limit);
    }
    throw tooMany(declaration.name);
  }

  return {
    get: (id, options) =>
      read(options, async (call) => {
        checkId(id);
        const found = await retryUntilDeadline(call, timing, () => reads.read(id, [call], options?.latest));
        return found?.doc;
      }),
    getMany: (ids, options) =>
      read(options, async (call) => {
        for (const id of ids) checkId(id);
        const asked = [...new Set(ids)];
        const found = await retryUntilDeadline(call, timing, () =>
          Promise.all(asked.map((id) => readOrError(id, call))),
        );
        return readable(
          found.filter((one) => one !== undefined),
          docOrThrow,
          report,
        );
      }),
    list: (query, options) => read(options, async (call) => page(checkQuery(declaration, query), call, query.strict)),
    listByPrefix: (query, options) => read(options, async (call) => page(checkPrefixQuery(declaration, query), call)),
    update: (id, decide, options) => changing(id, options, (call) => queue.update(id, decide, call)),
    remove: (id, isOver, options) => changing(id, options, (call) => queue.alone(id, () => remove(id, isOver, call))),
    changes: (options) => changes.changes(options) as Promise<Changes<never>>,
    forgetChanges: () => changes.forget(),
  };
}
