/**
 * What a backup of the embedded store asks of the processes that have its files open, at their admin ports: to leave the
 * files as they are while they are copied, and to hold all commits for a moment, which is the instant of the backup. It begins
 * for who proves that they may read the files. One that is left halfway is over by itself.
 */
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import type { StoreFile } from "@petstore/store/port";
import { type AdminAnswer, type AdminRoutes, problem, Unusable } from "../processes/admin.ts";
import { isProven } from "./proof.ts";

/** A copy is over unless somebody goes on with it within this time, in milliseconds. */
export const LEASE_MS = 30_000;
/** How long commits are held at most, in milliseconds. */
export const HOLD_MS = 100;

interface Copy {
  readonly token: string;
  lease: NodeJS.Timeout;
  /** Set while commits are held. */
  held?: NodeJS.Timeout | undefined;
}

/** Adds the route by which these files, all of one process, are copied. */
export function addCopies(routes: AdminRoutes, files: readonly StoreFile[]): void {
  let copy: Copy | undefined;

  function release(): boolean {
    const wasHeld = copy?.held !== undefined;
    clearTimeout(copy?.held);
    if (copy) copy.held = undefined;
    for (const file of files) file.release();
    return wasHeld;
  }

  function end(): void {
    release();
    clearTimeout(copy?.lease);
    copy = undefined;
    for (const file of files) file.keep(false);
  }

  function begin(): AdminAnswer {
    if (copy) return refused("A copy is being made already: wait until it is done.");
    const token = randomBytes(9).toString("base64url");
    copy = { token, lease: setTimeout(end, LEASE_MS).unref() };
    for (const file of files) file.keep(true);
    return { status: 200, body: { token, files: files.map(({ path }) => path) } };
  }

  /** The sizes of the logs, all at the same moment. */
  function hold(current: Copy): AdminAnswer {
    current.held ??= setTimeout(release, HOLD_MS).unref();
    return { status: 200, body: { logs: files.map((file) => file.hold()) } };
  }

  routes.set("PUT /store/copy", (body, query) => {
    const { step, token } = asked(body);
    if (step === "begin") {
      // Logs grow as long as a copy lasts.
      if (!files.every(({ path }) => isProven(dirname(path), query)))
        return problem(403, "This is for the user of the service: use npm run data as that user.");
      return begin();
    }
    if (!copy || copy.token !== token) return refused("This copy is over, so what it has is void: begin anew.");
    copy.lease.refresh();
    if (step === "hold") return hold(copy);
    // Held since it was asked for: if not, the moment was over before all processes had come to it.
    if (step === "release") return { status: 200, body: { wasHeld: release() } };
    if (step === "end") end();
    else if (step !== "go on") throw new Unusable('"step" must be begin, go on, hold, release or end.');
    return { status: 200, body: {} };
  });
}

const refused = (message: string): AdminAnswer => problem(409, message);

function asked(body: string): { readonly step?: unknown; readonly token?: unknown } {
  try {
    return Object(JSON.parse(body));
  } catch {
    throw new Unusable('Send JSON such as {"step": "begin"}.');
  }
}
