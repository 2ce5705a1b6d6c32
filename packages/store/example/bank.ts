import { type Doc, keep, put, type Store, schema } from "@petstore/store/port";

export interface Account extends Doc {
  readonly owner: string;
  readonly balance: number;
}
/** A collection, and an index by which it can be listed. */
const ACCOUNTS = schema<Account>()("accounts", { owner: ["owner"] });

export async function openBank(store: Store) {
  const accounts = await store.collection(ACCOUNTS);
  return {
    async openAccount(owner: string): Promise<number> {
      const _id = await store.nextId("accounts");
      return accounts.update(_id, () => put({ _id, owner, balance: 0 }, _id));
    },

    /** Pays in, or out if `amount` is negative. Resolves to whether there was enough. */
    pay: (id: number, amount: number): Promise<boolean> =>
      accounts.update(id, (account) => {
        if (!account || account.balance + amount < 0) return keep(false);
        return put({ ...account, balance: account.balance + amount }, true);
      }),

    accountsOf: (owner: string): Promise<Account[]> => accounts.list({ where: { owner }, limit: 10, order: "asc" }),
  };
}
