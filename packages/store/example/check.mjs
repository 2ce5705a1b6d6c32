// `node check.mjs http://127.0.0.1:8080 1` asks a bank that holds one of Ada's accounts already.
import { deepEqual, equal } from "node:assert/strict";

const [base, before = "0"] = process.argv.slice(2);

async function ask(path, method = "POST") {
  const response = await fetch(`${base}/${path}`, { method });
  equal(response.status, 200);
  return response.json();
}

/** Waits for a server that is just starting. */
async function started(tries = 300) {
  try {
    await fetch(`${base}/Ada`);
  } catch (error) {
    if (tries === 0) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
    await started(tries - 1);
  }
}

await started();
equal((await ask("Ada", "GET")).length, Number(before));
const id = await ask("Ada");
equal(await ask(`Ada/${id}/50`), true);
// One of them is refused.
const paid = await Promise.all([ask(`Ada/${id}/-30`), ask(`Ada/${id}/-30`)]);
deepEqual(paid.toSorted(), [false, true]);
const accounts = await ask("Ada", "GET");
deepEqual(accounts.at(-1), { _id: id, owner: "Ada", balance: 20, rev: 3 });
equal(accounts.length, Number(before) + 1);
