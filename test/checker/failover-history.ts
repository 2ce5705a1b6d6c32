/** Records all requests of clients and their answers, and reports answers that contradict earlier ones. */

import { type Body, paths, performOverHttp, shownBy } from "../workload/http.ts";
import { type Kind, kindOf, type Operation } from "../workload/operations.ts";
import type { Outcome, Shown } from "../workload/perform.ts";
import type { Attempt } from "./violations.ts";
import { recordsOf } from "./violations.ts";

/** Time limit for an answer; longer than any may take. In milliseconds. */
const LOST_MS = 60_000;
/** The gateway's time limit for a request, in milliseconds. */
const REQUEST_MS = 10_000;
/** The longest page of a list. */
const PAGE = 100;

interface Told {
  readonly kind: Kind;
  readonly id: number;
  readonly version: number;
  /** Whether an answer reported its deletion. */
  readonly gone: boolean;
}

/** A write that was answered as done, with the time of the answer on the clock of `performance`. */
interface Write {
  readonly kind: Kind;
  readonly at: number;
}

export type History = ReturnType<typeof createHistory>;

export function createHistory(gateway: string) {
  const violations: string[] = [];
  const attempts: Attempt[] = [];
  /** The number of answers by status. */
  const statuses = new Map<number, number>();
  const told = new Map<string, Told>();
  /** Records whose deletion was requested: they may be gone already. */
  const leaving = new Set<string>();
  const writes: Write[] = [];
  const seen: Shown[] = [];
  let reads = 0;
  let time = 0;

  const nameOf = (kind: Kind, id: number) => `${kind} ${id}`;
  const report = (violation: string) => void violations.push(violation);

  const send: typeof fetch = async (url, init) => {
    const sent = performance.now();
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(LOST_MS) });
    if (response.status === 504 && performance.now() - sent < REQUEST_MS) report("504 before the time was over");
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    if (response.status >= 500 && response.status !== 503 && response.status !== 504)
      report(`${init?.method ?? "GET"} ${url}: ${response.status} ${await response.clone().text()}`);
    const retryAfter = response.headers.get("retry-after");
    if (response.status === 503 && !/^\d+$/.test(retryAfter ?? "")) report(`503 with Retry-After: ${retryAfter}`);
    return response;
  };

  function tell(kind: Kind, id: number, version: number, gone = false): void {
    const name = nameOf(kind, id);
    const before = told.get(name);
    told.set(name, { kind, id, version: Math.max(version, before?.version ?? 0), gone: gone || before?.gone === true });
  }

  /** Sends an operation once. */
  async function perform(operation: Operation): Promise<Outcome> {
    const kind = kindOf(operation);
    const about = recordsOf(operation).filter(([kind, id]) => {
      const name = nameOf(kind, id);
      return told.has(name) && !leaving.has(name);
    });
    const deletes = /^(delete|cancel)/.test(operation.do);
    if (deletes && "id" in operation) leaving.add(nameOf(kind, operation.id));
    const attempt: Attempt = { operation, sent: time++, about };
    attempts.push(attempt);
    const outcome = await performOverHttp(gateway, operation, send);
    attempt.over = { at: time++, outcome };
    if (outcome.is === "done") {
      writes.push({ kind, at: performance.now() });
      if (outcome.shown) tell(kind, outcome.shown.id, outcome.shown.version);
      else if ("id" in operation) tell(kind, operation.id, 0, true);
    }
    return outcome;
  }

  async function read(path: string): Promise<{ body: unknown; etag: string | null } | undefined> {
    const response = await send(gateway + path);
    const body: unknown = await response.json();
    if (response.status >= 500) return undefined;
    reads++;
    if (response.ok) return { body, etag: response.headers.get("etag") };
    if (response.status !== 404) report(`GET ${path} was answered with ${response.status}`);
    return { body: undefined, etag: null };
  }

  /** Reads a record; undefined if it does not exist or can't be read now. */
  async function get(kind: Kind, id: number): Promise<Shown | undefined> {
    const name = nameOf(kind, id);
    const before = told.get(name);
    const answer = await read(`${paths[kind]}/${id}`);
    if (!answer) return undefined;
    if (answer.body === undefined) {
      if (before && !leaving.has(name)) report(`${name} was not found`);
      return undefined;
    }
    const shown = shownBy(kind, answer.body as Body, answer.etag);
    if (before?.gone) report(`${name} was there after its deletion was answered`);
    if (before && shown.version < before.version)
      report(`${name} was shown at version ${shown.version}, and at ${before.version} before`);
    tell(kind, id, shown.version);
    seen.push(shown);
    return shown;
  }

  /** Reads the newest page of the records of a kind. */
  async function list(kind: Kind): Promise<void> {
    const before = [...told.values()].filter((record) => record.kind === kind);
    const answer = await read(`${paths[kind]}?limit=${PAGE}`);
    if (!answer) return;
    const ids = (answer.body as Body[]).map((body) => Number(body.id ?? body.petId));
    const last = ids.length < PAGE ? 0 : Math.min(...ids);
    for (const { id, gone } of before) {
      if (gone && ids.includes(id)) report(`${kind} ${id} was listed after its deletion was answered`);
      // A pet's inventory entry disappears with the pet.
      const name = kind === "inventory" ? nameOf("pet", id) : nameOf(kind, id);
      if (id > last && !ids.includes(id) && !leaving.has(name)) report(`${name} was missing in a list`);
    }
  }

  return {
    perform,
    get,
    list,
    violations,
    attempts,
    statuses,
    told,
    writes,
    /** The records that GETs have shown. */
    seen,
    reads: () => reads,
    isThere: (kind: Kind, id: number) => told.has(nameOf(kind, id)) && !leaving.has(nameOf(kind, id)),
  };
}
