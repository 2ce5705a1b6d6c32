/**
 * Watches every stored write and every answer, and reports contradictions between them. A write is recognized by the mark that
 * it leaves in its record.
 */
import { type InventoryDoc, valueFor } from "../../services/inventory/model.ts";
import type { Stored } from "../simulation/disk.ts";
import { type Kind, kindOf, type Operation } from "../workload/operations.ts";
import type { Outcome } from "../workload/perform.ts";
import type { Write } from "./events.ts";
import { createExistence } from "./existence.ts";
import { wrongInTheEnd, wrongNow } from "./invariants.ts";
import { createObservations, markIn } from "./observations.ts";
import { type CollectionName, emptyState, isRecord, type State, shownIn, writeOf } from "./state.ts";
import { type Attempt, isBound, markBy, recordsOf, violationsIn } from "./violations.ts";

export function createOnlineChecker() {
  const violations: string[] = [];
  const attempts: Attempt[] = [];
  const history: Write[] = [];
  const state: State = emptyState();
  const report = (violation: string) => void violations.push(violation);
  const { marked, nameIn, viewOf, show } = createObservations(report, takesEffect);
  const exists = createExistence(report, attempts);
  let time = 0;

  function written(collection: string, after: Stored): void {
    if (!isRecord(collection)) return;
    time++;
    const id = after._id as number;
    // Removed records as well: an id is never used again.
    const before = state[collection].get(id) as Stored | undefined;
    (state[collection] as Map<number, unknown>).set(id, after);
    for (const violation of wrongNow(state, collection, id)) report(violation);
    comesBack(collection, after, before);
    if (collection === "inventory" && before)
      lists(after as unknown as InventoryDoc, before as unknown as InventoryDoc);
    const write = writeOf(collection, after);
    history.push(write);
    if (write.shown) show(write.shown);
  }

  function comesBack(collection: CollectionName, after: Stored, before: Stored | undefined): void {
    const over = ["DELETED", "ABORTED", "CANCELLED", "RETIRED"];
    if (before && over.includes(String(before.state)) && after.state !== before.state)
      report(`${collection} ${after._id} was ${before.state} and became ${after.state}`);
    if (before && Number(after.statusRev) < Number(before.statusRev))
      report(`${collection} ${after._id} took older news of its status`);
    if (before && Number(after.version) < Number(before.version))
      report(`${collection} ${after._id} went back in its versions`);
  }

  /** A listing may change only by a new operation of the pet, or because there is stock again. */
  function lists(after: InventoryDoc, before: InventoryDoc): void {
    if (before.state !== "OPEN" || after.state !== "OPEN") return;
    const restocked = before.listing === "sold" && after.listing === "available" && after.quantity > 0;
    if (after.lastOp.op < before.lastOp.op) report(`inventory ${after._id} took an older operation of its pet`);
    if (after.lastOp.op === before.lastOp.op && after.listing !== before.listing && !restocked)
      report(`inventory ${after._id} was listed as ${after.listing} without an operation of its pet`);
  }

  /** A record was created under a key. Checks that some caller may still expect that. */
  function takesEffect(mark: string, kind: Kind): void {
    const key = attempts.find(({ operation }) => markBy(operation) === mark)?.operation.key;
    if (key === undefined) return;
    const all = attempts.filter(({ operation }) => operation.key === key && kindOf(operation) === kind);
    const mayStill = all.some(
      ({ operation, over }) => markBy(operation) === mark && (!over || over.outcome.is === "unknown"),
    );
    if (!mayStill || all.some(isBound)) report(`${mark} took effect after its key was answered`);
  }

  /** Once a cancellation or completion is answered, its units are back or sold. */
  function settled({ operation, over }: Attempt): void {
    if (over?.outcome.is !== "done") return;
    const completes = operation.do === "place order" && operation.complete;
    const id = completes ? over.outcome.shown?.id : "id" in operation && operation.id;
    if (!id || !(completes || operation.do === "cancel order" || operation.do === "complete order")) return;
    const holder = [...state.inventory.values()].find(({ reservations }) => valueFor(reservations, id));
    if (holder) report(`${operation.do} ${id} was answered and pet ${holder._id} still holds units for it`);
  }

  /** Compares an answer with what was stored. */
  function answered({ operation, over }: Attempt): void {
    const shown = over?.outcome.is === "done" ? over.outcome.shown : undefined;
    if (!shown) return;
    const stored = viewOf(shown);
    if (JSON.stringify(stored) !== JSON.stringify(shown.view))
      report(
        `${operation.do} answered ${nameIn(shown)} as ${JSON.stringify(shown.view)}, stored: ${JSON.stringify(stored)}`,
      );
    const mark = markBy(operation);
    if (mark && (markIn(shown) !== mark || !marked.get(mark)?.has(shown.id)))
      report(`${operation.do} (${mark}) was answered with ${markIn(shown)}`);
  }

  /** A record as it is visible from outside now. */
  const shown = (kind: Kind, id: number) => shownIn(state, kind, id);

  return {
    written,
    state,
    /** All writes. */
    history,
    /** Records one attempt of an operation and its outcome. */
    async follow(operation: Operation, sending: () => Promise<Outcome>): Promise<Outcome> {
      const about = recordsOf(operation).filter(([kind, id]) => shown(kind, id));
      const attempt: Attempt = { operation, sent: time++, about };
      attempts.push(attempt);
      const outcome = await sending();
      attempt.over = { at: time++, outcome };
      answered(attempt);
      settled(attempt);
      exists(attempt);
      return outcome;
    },
    /** All violations so far. */
    violations: (): readonly string[] => violations,
    /** All violations, when everything has settled: those found so far, and those of the final state. */
    verdict(): readonly string[] {
      return [
        ...violations,
        ...violationsIn(attempts, marked, state, (kind, id) => shown(kind, id) !== undefined),
        ...wrongInTheEnd(state),
      ];
    },
    shown,
  };
}
export type OnlineChecker = ReturnType<typeof createOnlineChecker>;
