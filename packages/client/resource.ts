/** What can be done with the records of one kind, by the RPCs of their service. */
import type { DescField, DescMethodServerStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { CallOptions, Calls } from "./calls.ts";
import { PetstoreError } from "./errors.ts";
import { plainValue } from "./records.ts";
import {
  type Change,
  eventsOf,
  type Present,
  type Resumable,
  resumed,
  type SnapshotMark,
  type WatchOptions,
} from "./watch.ts";

export interface Page<T> {
  readonly items: readonly T[];
  /** Where `list({ pageToken })` goes on; "" on the last page. */
  readonly nextPageToken: string;
}

/** Yields record by record. Pages are requested as they are read: when the loop ends, no more are. */
export interface List<T> extends AsyncIterable<T> {
  /** Yields page by page; each is requested after the one before has been used. */
  pages(): AsyncGenerator<Page<T>>;
}

export interface Condition {
  /** The `etag` of the record, or "*". If it has another one, nothing changes, and the call fails with ETAG_MISMATCH. */
  readonly ifMatch?: string | undefined;
}

export interface Resource<T, New, Changes, Filter, WatchFilter> {
  /** Reads one. */
  get(id: number, options?: CallOptions): Promise<T>;
  /** `limit` is the size of a page, 100 at most. */
  list(filter?: Filter, options?: CallOptions): List<T>;
  /** Changes the fields that are given and no others. `null` removes one, `undefined` leaves it as it is. */
  update(id: number, fields: Changes, options?: CallOptions & Condition): Promise<T>;
  /** Sets all fields. One that is left out is removed, if it is one that `update` can remove, or else stays. */
  replace(id: number, fields: New, options?: CallOptions & Condition): Promise<T>;
  /**
   * Yields changes from now on, from `resumeToken` on, or with `snapshot: true` after all existing records, until the loop is
   * left or the signal is aborted. When a stream ends, also with its credential, or is silent for 45 s, another one continues
   * where it ended, however long the petstore is unavailable. Nothing is missed, and what comes twice has the same `id`.
   *
   * Throws a PetstoreError if the petstore refuses, or can't be reached from the beginning (after four attempts). Throws
   * EVENTS_EXPIRED if the petstore no longer knows the changes since the token; with `snapshot: true` it starts again with a
   * snapshot instead.
   */
  watch<S extends boolean = false>(
    filter?: WatchFilter & { readonly snapshot?: S | undefined },
    options?: WatchOptions,
  ): AsyncGenerator<Change<T> | (S extends true ? Present<T> | SnapshotMark : never)>;
}

export interface CreateOptions extends CallOptions {
  /** Makes it safe to repeat this create by another call. Otherwise it has a key of its own, for its own attempts. */
  readonly idempotencyKey?: string | undefined;
}

export interface Creatable<T, New> {
  /** Creates one, once, however often the call is repeated. What the petstore sets by itself is in the answer. */
  create(fields: New, options?: CreateOptions): Promise<T>;
  /** Deletes one. Is not repeated if no answer came: then look whether it is still there. */
  delete(id: number, options?: CallOptions & Condition): Promise<void>;
}

/** The fields that the petstore alone sets, although requests have them, too. */
const OUTPUT_ONLY: readonly string[] = ["id", "etag"];

/** By the RPCs for `one` and for `many`, from whose types those of the records follow. TypeScript can't tell it here. */
export function resource({ method: rpcs }: DescService, one: string, many: string, calls: Calls): object {
  const rpc = (name: string) => rpcs[name] as DescMethodUnary;
  const [get, list, update] = [rpc(`get${one}`), rpc(`list${many}`), rpc(`update${one}`)];
  const [create, remove] = [rpc(`create${one}`), rpc(`delete${one}`)];
  const watch = rpcs[`watch${many}`] as DescMethodServerStreaming;
  // Requests begin with the id, followed by what is to be set; answers begin with a record, or the records of a page.
  const [id, input] = update.input.fields as [DescField, DescField];
  const [output] = get.output.fields as [DescField];

  /** An id that is left out would be 0. */
  const of = (which: number) => ({ [id.localName]: which ?? Number.NaN });

  const contentOf = (method: DescMethodUnary, answer: Message) => {
    const [field] = method.output.fields as [DescField];
    return plainValue(field, (answer as unknown as Record<string, unknown>)[field.localName]);
  };
  const record = async (method: DescMethodUnary, request: object, options?: CallOptions) =>
    contentOf(method, await calls.unary(method, request, options));

  /** A record may be given as it was received: what nobody can set is left out. */
  const settable = (fields: object): Record<string, unknown> => {
    if (typeof fields !== "object" || fields === null)
      throw new PetstoreError("NOT_SENT", `The fields of ${input.localName} must be an object, not ${fields}.`);
    return Object.fromEntries(
      Object.entries(fields).filter(([name]) =>
        input.message?.field[name] ? !OUTPUT_ONLY.includes(name) : !output.message?.field[name],
      ),
    );
  };

  async function* pages(filter: object, options?: CallOptions) {
    let next: { readonly pageToken?: string } = {};
    do {
      const answer = await calls.unary(list, { ...filter, ...next }, options);
      const { nextPageToken } = answer as unknown as Page<never>;
      yield { items: contentOf(list, answer) as unknown[], nextPageToken };
      next = { pageToken: nextPageToken };
    } while (next.pageToken);
  }
  async function* items(filter: object, options?: CallOptions) {
    for await (const page of pages(filter, options)) yield* page.items;
  }

  return {
    get: (which: number, options?: CallOptions) => record(get, of(which), options),
    list: (filter: object = {}, options?: CallOptions) => ({
      pages: () => pages(filter, options),
      [Symbol.asyncIterator]: () => items(filter, options),
    }),
    async update(which: number, fields: object, { ifMatch: etag, ...options }: CallOptions & Condition = {}) {
      const given = settable(fields);
      const named = input.message?.fields.filter(({ localName }) => given[localName] !== undefined) ?? [];
      const updateMask = { paths: named.map(({ name }) => name) };
      return record(update, { ...of(which), [input.localName]: given, updateMask, etag }, options);
    },
    async replace(which: number, fields: object, { ifMatch: etag, ...options }: CallOptions & Condition = {}) {
      return record(update, { ...of(which), [input.localName]: settable(fields), etag }, options);
    },
    watch(filter: Resumable = {}, options: WatchOptions = {}) {
      const open = (resumeToken: string, signal: AbortSignal) =>
        eventsOf(watch, calls.stream(watch, { ...filter, resumeToken }, { ...options, signal }));
      return resumed(watch.name, open, filter, options, calls);
    },
    ...(create && {
      async create(fields: object, { idempotencyKey: requestId, ...options }: CreateOptions = {}) {
        return record(create, { [input.localName]: settable(fields), requestId }, options);
      },
      async delete(which: number, { ifMatch: etag, ...options }: CallOptions & Condition = {}) {
        await calls.unary(remove, { ...of(which), etag }, options);
      },
    }),
  };
}
