/** Another client that uses the petstore at the same time, on its own open connections. It must never notice the fuzzing. */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { publicServices } from "../../gateway/services.ts";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { Find } from "./find.ts";

export interface Neighbour extends Disposable {
  /** Creates the records that cases refer to. */
  furnish(): Promise<void>;
  /** Changes those of these records that still exist to values that no case asks for. */
  renew(): Promise<void>;
  /** Sends a request to a process. Throws a Find unless the answer is as usual. */
  ask(name: ProcessName): Promise<void>;
  /** All that a case can change: the records that it may refer to, and the newest of each kind. */
  state(): Promise<string>;
}

/** A process that does not answer for so long is stuck. Time is not judged otherwise. */
const STUCK_MS = 60_000;
const KINDS = ["/pets", "/categories", "/store/orders", "/store/inventory"];
const NAMED = "1,2,3,4,5,6,7,8";

export function createNeighbour(port: (name: ProcessName) => number, key: string): Neighbour {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  async function send(name: ProcessName, path: string, method = "GET", body?: object): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = {
      "x-api-key": key,
      "x-forwarded-for": "192.0.2.1",
      ...(body && { "content-type": "application/json" }),
    };
    const asked = request({ agent, host: "127.0.0.1", port: port(name), path, method, headers }, (answer) => {
      text(answer).then((said) => {
        if ((answer.statusCode ?? 500) < 300) resolve(said);
        else reject(new Find(`${name} answers somebody else with ${answer.statusCode}`, `${method} ${path}: ${said}`));
      }, reject);
    });
    asked.setTimeout(STUCK_MS, () => asked.destroy(new Find(`${name} does not answer somebody else`)));
    asked.once("error", reject).end(body && JSON.stringify(body));
    try {
      return await promise;
    } catch (error) {
      if (error instanceof Find) throw error;
      throw new Find(`${name} breaks off what it says to somebody else`, `${error}`);
    }
  }

  const pathAt = (name: ProcessName) => {
    const service = publicServices.find((one) => one.name === name)?.desc;
    const list = service?.methods.find((method) => method.name.startsWith("List"))?.name;
    return service
      ? `/${service.typeName}/${list}?connect=v1&encoding=json&message=%7B%22limit%22%3A1%7D`
      : "/pets?limit=1";
  };
  const paths = new Map(processNames.map((name) => [name, pathAt(name)]));

  let renewals = 0;

  return {
    async furnish() {
      for (let i = 0; i < 3; i++) {
        await send("gateway", "/categories", "POST", { name: "dogs" });
        await send("gateway", "/pets", "POST", { name: "Rex", categoryId: 1 });
        await send("gateway", `/store/inventory/${i + 1}`, "PUT", { quantity: 1000 });
        await send("gateway", "/store/orders", "POST", { petId: i + 1 });
      }
    },
    async renew() {
      const name = `renewed ${++renewals}`;
      const changes = {
        "/categories": { name },
        "/pets": { name },
        "/store/inventory": { quantity: 1000 + renewals },
        "/store/orders": { shipDate: new Date(1000 * renewals).toISOString() },
      };
      await Promise.allSettled(
        Object.entries(changes).flatMap(([kind, change]) =>
          NAMED.split(",").map((id) => send("gateway", `${kind}/${id}`, "PATCH", change)),
        ),
      );
    },
    ask: async (name) => void (await send(name, paths.get(name) ?? "/")),
    async state() {
      const lists = KINDS.flatMap((kind) => [
        `${kind}?${kind.endsWith("inventory") ? "petId" : "id"}=${NAMED}`,
        `${kind}?limit=1`,
      ]);
      const told = await Promise.all(lists.map((path) => send("gateway", path)));
      // A pet's status follows its inventory entry a little later.
      return told.map((said, i) => (i < 2 ? said.replaceAll(/"status":"\w+"/g, "") : said)).join("\n");
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}
