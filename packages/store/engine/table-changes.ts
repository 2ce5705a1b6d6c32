/**
 * The changes of a collection whose engine runs in this process. They are logged together with the documents, delivered
 * once both are durable, and read back for readers that begin in the past.
 */
import { decode, encode, type Fields } from "../document/codec.ts";
import { frozen, type ShownChange, shownChange, viewOf } from "../document/fold.ts";
import { type CallOptions, type Change, type Doc, Expired, type Position } from "../port.ts";
import type { Declaration } from "./collections.ts";
import { createFeed, type Feed, noChanges } from "./feed.ts";
import { readable } from "./queries.ts";
import type { TableDeps } from "./table-store.ts";

const MAX_READ = 256;

/** The place of a change in the log, and its time. */
interface Mark {
  /** From 1. There may be gaps, but no number is used twice. */
  readonly number: number;
  /** In milliseconds since 1970, never less than that of the change before. */
  readonly at: number;
}

export interface LogEntry extends Mark {
  readonly change: Uint8Array;
}

/** The changes as bytes, in the order in which they were made. */
export interface ChangeLog {
  last(): Mark | undefined;
  /** The time of a change that is still in the log. */
  timeOf(number: number): number | undefined;
  after(number: number, limit: number): readonly LogEntry[];
  /** Returns the number. Runs as part of a statement. */
  append(at: number, change: Uint8Array): number;
  /**
   * Removes at most `limit` of the oldest changes that were followed by another change before that time, so never the
   * last: until another change follows, its position is given to readers that wait. Returns the number removed. Runs as
   * part of a statement.
   */
  forget(before: number, limit: number): number;
}

type Written = Doc & ShownChange;

export type TableChanges = ReturnType<typeof tableChanges>;

/**
 * A position is the mark of the change before it. The time distinguishes it from a position of another history: numbers
 * are used again after a backup was restored.
 */
const FORM = /^([0-9a-f]{14})-([0-9a-f]{12})$/;
const BEGIN: Mark = { number: 0, at: 0 };
const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
const positionAt = ({ number, at }: Mark): Position => `${hex(number, 14)}-${hex(at, 12)}`;

function markOf(position: Position): Mark {
  const [, number = "", at = ""] = FORM.exec(position) ?? [];
  if (number === "") throw new Expired();
  return { number: Number.parseInt(number, 16), at: Number.parseInt(at, 16) };
}

export function tableChanges(declaration: Declaration, log: ChangeLog | undefined, deps: TableDeps) {
  const { runs, clock, sleep, report } = deps;
  const view = viewOf<Doc>(declaration);
  if (!log || !view) return { note: () => undefined, ...noChanges(declaration.name) };

  const changeOf = ({ number, at, change }: LogEntry): Change<object> => {
    const written = decode<Written>(change, { name: `the changes of ${declaration.name}` });
    return frozen({ ...written, time: at, position: positionAt({ number, at }) });
  };

  /** Throws `Expired` when changes after the mark are gone, or when no change has this mark. */
  function check({ number, at }: Mark): void {
    const isThere = number === 0 ? at === 0 && (log?.after(0, 1)[0]?.number ?? 1) === 1 : log?.timeOf(number) === at;
    if (!isThere) throw new Expired();
  }

  const feed: Feed<object> = createFeed<object>(
    {
      now: (options) => runs.read(options, () => tail.position),
      async past(position, options) {
        let mark = markOf(position);
        await runs.read(options, () => check(mark));
        return {
          read: () =>
            // Answered once what it saw is durable.
            runs.read(undefined, () => {
              check(mark);
              const entries = log.after(mark.number, MAX_READ);
              mark = entries.at(-1) ?? mark;
              return { changes: readable(entries, changeOf, report), position: positionAt(mark) };
            }),
          close() {},
        };
      },
    },
    positionAt(log.last() ?? BEGIN),
    sleep,
  );
  const { tail } = feed;
  let latest = log.last()?.at ?? 0;

  return {
    /** Logs a change as part of its statement. Returns what delivers it; undefined if it is not visible. */
    note(before: Doc | undefined, after: Doc): (() => void) | undefined {
      const news = shownChange(view, before, after);
      if (!news) return undefined;
      const { _id, rev } = after;
      const bytes = encode({ _id, rev, ...news } satisfies Written as Fields);
      latest = Math.max(latest, clock());
      const mark: Mark = { number: log.append(latest, bytes), at: latest };
      return () => {
        const position = positionAt(mark);
        if (!feed.isRead) return tail.moveTo(position);
        tail.add(frozen({ ...news, _id, rev, time: mark.at, position }), bytes.length);
        feed.wake();
      };
    },

    changes: feed.changes,

    async forget(before: number, limit: number, options: CallOptions | undefined): Promise<number> {
      let forgotten = 0;
      await runs.write(options, (batch) =>
        batch.write(() => {
          forgotten = log.forget(before, limit);
        }),
      );
      return forgotten;
    },

    end: () => feed.end(),
  };
}
