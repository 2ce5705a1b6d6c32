import { openStore, type StoreOptions } from "@petstore/store/open";
import { type Doc, keep, put, schema } from "@petstore/store/port";

interface Account extends Doc {
  readonly owner: string;
  readonly balance: number;
}
/** A collection, and an index by which it can be listed. */
const ACCOUNTS = schema<Account>()("accounts", { owner: ["owner"] });

/** Opens an account, pays in, and takes from it, each exactly once, and lists what its owner has. */
export async function bank(dataDir: string, options: StoreOptions): Promise<readonly Account[]> {
  const store = await openStore({ service: "bank", dataDir }, options);
  const accounts = await store.collection(ACCOUNTS);
  const id = await store.nextId("accounts");

  await accounts.update(id, () => put({ _id: id, owner: "Ada", balance: 0 }, undefined));
  await accounts.update(id, (account) => (account ? put({ ...account, balance: 50 }, true) : keep(false)));
  const take = (amount: number) =>
    accounts.update(id, (account) =>
      account && account.balance >= amount
        ? put({ ...account, balance: account.balance - amount }, "taken")
        : keep("refused"),
    );
  await Promise.all([take(30), take(30)]); // one of them is refused

  const hers = await accounts.list({ where: { owner: "Ada" }, limit: 10, order: "asc" });
  await store.close();
  return hers;
}
