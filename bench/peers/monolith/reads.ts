/** Reads, either with one query per request, or coalesced: requests that wait for the same collection share one query. */
import type { Filter } from "mongodb";
import type { Database, Pet } from "./database.ts";

export interface Page {
  readonly limit: number;
  readonly categoryId?: number;
  readonly status?: Pet["status"];
  /** Only pets below this id. */
  readonly before?: number;
}

export interface Reads {
  get(id: number): Promise<Pet | null | undefined>;
  getMany(ids: readonly number[]): Promise<Pet[]>;
  /** Newest first; has one more than the limit if there are more. */
  list(page: Page): Promise<Pet[]>;
}

export const direct = ({ pets }: Database): Reads => ({
  get: (id) => pets.findOne({ _id: id }),
  getMany: (ids) => pets.find({ _id: { $in: [...ids] } }).toArray(),
  list({ limit, categoryId, status, before }) {
    const filter: Filter<Pet> = {
      ...(categoryId === undefined ? {} : { categoryId }),
      ...(status === undefined ? {} : { status }),
      ...(before === undefined ? {} : { _id: { $lt: before } }),
    };
    return pets
      .find(filter)
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
  },
});

export function coalesced({ getMany, list }: Reads): Reads {
  const many = inTurns(async (ids: readonly number[]) => {
    const found = new Map((await getMany([...new Set(ids)])).map((pet) => [pet._id, pet]));
    return ids.map((id) => found.get(id));
  });
  const lists = new Map<string, (page: Page) => Promise<Pet[]>>();
  return {
    getMany,
    get: many,
    list(page) {
      const name = JSON.stringify(page);
      const same =
        lists.get(name) ??
        inTurns<Page, Pet[]>(
          async (asked) => {
            const pets = await list(page);
            return asked.map(() => pets);
          },
          () => lists.delete(name),
        );
      lists.set(name, same);
      return same(page);
    },
  };
}

/**
 * Runs one query at a time. All calls that come meanwhile share the next one, so each gets data that was read after it was
 * made. `rest` is called when no call waits any more.
 */
function inTurns<K, V>(query: (keys: readonly K[]) => Promise<V[]>, rest?: () => void): (key: K) => Promise<V> {
  let next: { readonly keys: K[]; readonly answer: Promise<V[]> } | undefined;
  let underWay: Promise<unknown> = Promise.resolve();

  function begin() {
    const keys: K[] = [];
    const answer = underWay.then(() => {
      next = undefined;
      return query(keys);
    });
    underWay = answer
      .catch(() => {})
      .then(() => {
        if (!next) rest?.();
      });
    return { keys, answer };
  }

  return async (key) => {
    next ??= begin();
    const { keys, answer } = next;
    const place = keys.push(key) - 1;
    return (await answer)[place] as V;
  };
}
