/**
 * The changes of a collection that lives in this process. They are written down together with the documents, told when both
 * are there to stay, and read back by those who come later.
 */
import { decode, encode, type Fields } from "../document/codec.ts";
import { type Report, readable } from "../document/corrupt.ts";
import { frozen } from "../document/frozen.ts";
import { type Told, tellingOf, told } from "../document/told.ts";
import {
  type CallOptions,
  type Change,
  type Changes,
  type ChangesOptions,
  type Doc,
  Expired,
  type Position,
} from "../port.ts";
import type { EngineContext } from "./context.ts";
import { createFeed, type Feed, untold } from "./feed.ts";
import type { Declaration } from "./indexes.ts";
import type { Runs } from "./table-store.ts";

/** Changes of the past that are read at once. */
const MAX_READ = 256;

/** The place of a change in the log, and its time. */
interface Mark {
  /** From 1; numbers may be left out, and none comes twice. */
  readonly number: number;
  /** In milliseconds since 1970, never less than that of the change before. */
  readonly at: number;
}

export interface LogEntry extends Mark {
  readonly change: Uint8Array;
}

/** The changes as bytes, in the order in which they were made. */
export interface ChangeLog {
  /** The latest change. */
  last(): Mark | undefined;
  /** When a change was made that is still there. */
  timeOf(number: number): number | undefined;
  after(number: number, limit: number): readonly LogEntry[];
  /** Resolves to the number. A part of a statement. */
  append(at: number, change: Uint8Array): number;
  /**
   * Removes the oldest, `limit` at most, that another one followed before that time, so never the last: until then its
   * position was given to those who wait. How many. A part of a statement.
   */
  forget(before: number, limit: number): number;
}

/** A change as it is written down. */
type Written = Doc & Told;

export interface TableChanges {
  /** Writes down what a change tells, as a part of its statement. What it returns tells it to those who read. */
  note(before: Doc | undefined, after: Doc): (() => void) | undefined;
  changes(options: ChangesOptions): Promise<Changes<object>>;
  forget(before: number, limit: number, options: CallOptions | undefined): Promise<number>;
  /** Ends all who read. */
  end(): void;
}

/**
 * A position is the mark of the change before it. The time tells it from one of another past: a number comes twice when a
 * backup was restored.
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

interface Parts extends Pick<EngineContext, "clock" | "sleep"> {
  readonly declaration: Declaration;
  readonly log: ChangeLog | undefined;
  readonly runs: Runs;
  readonly report: Report;
}

export function tableChanges({ declaration, log, runs, clock, sleep, report }: Parts): TableChanges {
  const telling = tellingOf<Doc>(declaration);
  if (!log || !telling) return { note: () => undefined, ...untold(declaration.name) };

  const changeOf = ({ number, at, change }: LogEntry): Change<object> => {
    const written = decode<Written>(change, { name: `the changes of ${declaration.name}` });
    return frozen({ ...written, time: at, position: positionAt({ number, at }) });
  };

  /** Throws `Expired` when changes after the mark are gone, or it is the mark of none. */
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
            // Answered when what it saw is there to stay.
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
    note(before, after) {
      const news = told(telling, before, after);
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

    forget: (before, limit, options) =>
      runs
        .write(options, (batch) => {
          let forgotten = 0;
          batch.write(() => {
            forgotten = log.forget(before, limit);
          });
          return () => forgotten;
        })
        .then((count) => count()),

    end: () => feed.end(),
  };
}
