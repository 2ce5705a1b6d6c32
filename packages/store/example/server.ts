/** `POST /Ada` opens an account, `POST /Ada/1/-30` pays 30 out of account 1, `GET /Ada` lists what Ada has. */
import { createServer } from "node:http";
import { openBank } from "./bank.ts";
import { openBankStore } from "./store.ts";

const { PORT, DATA_DIR, MONGODB_URI } = process.env;
const store = await openBankStore(MONGODB_URI, DATA_DIR);
const bank = await openBank(store);

async function answer(method: string, [owner = "", id, amount]: readonly string[]): Promise<unknown> {
  if (method === "GET") return bank.accountsOf(owner);
  return id === undefined ? bank.openAccount(owner) : bank.pay(Number(id), Number(amount));
}

const server = createServer(async ({ method = "", url = "" }, response) => {
  try {
    response.end(JSON.stringify(await answer(method, url.split("/").slice(1))));
  } catch (error) {
    response.writeHead(503).end(`${error}`);
  }
});
server.listen(Number(PORT), "127.0.0.1");
process.once("SIGTERM", async () => {
  server.close();
  await store.close();
  process.exit();
});
