/**
 * The engine on MongoDB: any number of processes may share its data. A call is answered once what the answer says has
 * reached the disks of a majority of the replica set.
 */
import "./driver-on-demand.ts";
import { randomBytes } from "node:crypto";
import { checkNextId, createAdmission, createCollections } from "../engine/admission.ts";
import type { EngineContext } from "../engine/context.ts";
import { checkDeclaration, type Declaration, reporting } from "../engine/queries.ts";
import { type Store, Unavailable, UnsupportedFormat } from "../port.ts";
import { type MongoChanges, mongoChanges } from "./changes.ts";
import { openClients } from "./clients.ts";
import { mongoCollection, type Run } from "./collection.ts";
import { connect } from "./connect.ts";
import { byMajority, openDatabase } from "./database.ts";
import { retryUntilDeadline, withDeadline, withTimeout } from "./deadline.ts";
import { databaseName, FORMAT, formatProblem } from "./identity.ts";
import { indexBuilds } from "./index-builds.ts";
import { createSequences } from "./sequences.ts";

export { sharedClients } from "./clients.ts";
export { databaseName } from "./identity.ts";

export interface MongoOptions extends Pick<EngineContext, "clock" | "random" | "sleep" | "log"> {
  readonly waitsFor?: (what: string) => void;
  readonly onCorrupt?: ((collection: string | undefined) => void) | undefined;
  readonly version?: string | undefined;
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
  let changes = 0;
  const sequences = createSequences(database, options, log);
  const all: MongoChanges[] = [];

  async function openCollection(declaration: Declaration): Promise<unknown> {
    checkDeclaration(declaration);
    const indexes = indexBuilds(database.db, patient, declaration, options);
    await indexes.build();
    const told = mongoChanges({ declaration, database, streams: patient, turns, timing: options, run, report, log });
    all.push(told);
    return mongoCollection({
      declaration,
      database,
      changes: told,
      indexes,
      timing: options,
      nextOperation: () => ({ by: process, number: ++changes }),
      run,
      admission,
      report,
    });
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
      for (const told of all) told.end();
      await Promise.allSettled(underWay);
      await sequences.close();
      await clients.close();
    },
  };
}
