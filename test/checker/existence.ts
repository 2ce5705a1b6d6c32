/**
 * Checks that deletion is final: after any service has reported a record as gone, no answer shows it. A list reports so by
 * leaving the record out, unless a deletion of it may have been undecided then, or it may be on a later page.
 */

import { ListCategoriesRequestSchema } from "#proto/petstore/category/v1/category_service_pb.ts";
import { maxPageSize } from "../../services/records/page.ts";
import { isRead, type Kind, kindOf } from "../workload/operations.ts";
import { notFound } from "../workload/perform.ts";
import { type Attempt, isCreate, isDelete, isRepeat, recordsOf } from "./violations.ts";

/** A pet and its inventory entry exist together. */
const subject = (kind: Kind, id: number) => `${kind === "inventory" ? "pet" : kind} ${id}`;

/** Of a list without a limit, whichever records it is of. */
const PAGE = maxPageSize(ListCategoriesRequestSchema);

/** Of these records, those that a page of the newest would have if they existed. */
const onPage = (ids: Iterable<number>, found: readonly number[]): number[] => {
  const last = found.length < PAGE ? 0 : Math.min(...found);
  return [...ids].filter((id) => id > last);
};

/** `attempts` are all that were begun. */
export function createExistence(report: (violation: string) => void, attempts: readonly Attempt[]) {
  /** When an answer first showed a record, by kind: a record that was never shown can't be gone. */
  const shown = new Map<Kind, Map<number, number>>();
  /** When an answer first reported that the subject is gone. */
  const gone = new Map<string, number>();

  function isGone(kind: Kind, id: number, { sent, over }: Attempt): void {
    const known = shown.get(kind)?.get(id);
    if (known === undefined || known > sent || !over) return;
    const name = subject(kind, id);
    gone.set(name, Math.min(gone.get(name) ?? over.at, over.at));
  }

  function isShown(kind: Kind, id: number, { operation, sent, over }: Attempt): void {
    const ids = shown.get(kind) ?? new Map<number, number>();
    shown.set(kind, ids);
    if (over && !ids.has(id)) ids.set(id, over.at);
    const since = gone.get(subject(kind, id));
    // With an idempotency key the first answer comes again, whatever has happened to the record since.
    if (since !== undefined && since < sent && !isCreate(operation))
      report(`${kind} ${id} was said to be gone, and ${operation.do}, sent after that, showed it`);
  }

  /** The records that a list may have left out without saying that they are gone. */
  function undecided(kind: Kind, { sent }: Attempt): Set<number> {
    const isOpen = ({ operation, over }: Attempt) =>
      isDelete(operation) && kindOf(operation) === kind && !(over?.outcome.is === "refused" && over.at < sent);
    return new Set(attempts.filter(isOpen).flatMap(({ operation }) => ("id" in operation ? operation.id : [])));
  }

  return (attempt: Attempt): void => {
    const { operation, over } = attempt;
    const kind = kindOf(operation);
    const outcome = over?.outcome;
    if (outcome?.is === "refused" && !isRepeat(attempt, attempts))
      for (const [about, id] of recordsOf(operation))
        if (outcome.reason === notFound(about)) isGone(about, id, attempt);
    if (outcome?.is !== "done") return;
    const { shown: record, found = record ? [record.id] : [] } = outcome;
    for (const id of found) isShown(kind, id, attempt);
    const listed = () => onPage(new Set(shown.get(kind)?.keys()).difference(undecided(kind, attempt)), found);
    const missing = "id" in operation ? [operation.id] : isRead(operation) ? listed() : [];
    for (const id of missing) if (!found.includes(id)) isGone(kind, id, attempt);
  };
}
