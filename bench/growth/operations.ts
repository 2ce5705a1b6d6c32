/** What is asked of a petstore that has grown. Each pet, category and deep page is another one each time. */
import { orders, type Workload, workloads } from "../load/workloads.ts";
import { upTo } from "../seed/random.ts";

const LIMIT = 20;
const all = `/pets?limit=${LIMIT}`;
const onHold = `${all}&status=pending`;

/** As many as it takes to keep a small machine busy. */
const CONNECTIONS = [16];
const named = (name: string) => workloads.filter((workload) => workload.name === name);

const listing = (name: string, title: string, path: (pets: number, random: () => number) => string): Workload => ({
  ...{ name, title, connections: CONNECTIONS },
  request: (pets, random) => ({ method: "GET", path: path(pets, random) }),
});

/** Somewhere between the first and the last tenth. */
const deep = (pets: number, random: () => number) => Math.floor(pets / 10) + upTo(Math.floor((pets * 8) / 10), random);

/** Those of a petstore that runs at `url`: page tokens carry a mark of their list, which it is asked for. */
export async function operations(url: string): Promise<readonly Workload[]> {
  const [ofAll, ofOnHold] = await Promise.all([tokens(url, all), tokens(url, onHold)]);
  return [
    ...named("get"),
    ...named("list"),
    listing(
      "list-deep",
      "20 pets, anywhere in the list",
      (pets, random) => `${all}&pageToken=${ofAll(deep(pets, random))}`,
    ),
    listing("list-on-hold", "the newest 20 pets that are on hold", () => onHold),
    listing(
      "list-on-hold-deep",
      "20 pets that are on hold, anywhere in the list",
      (pets, random) => `${onHold}&pageToken=${ofOnHold(deep(pets, random))}`,
    ),
    ...named("list-filters"),
    orders,
  ].map((workload) => ({ ...workload, connections: CONNECTIONS }));
}

/** Makes tokens for a list: a page that begins below an id. They are as `services/resource/page.ts` makes them. */
async function tokens(url: string, path: string): Promise<(below: number) => string> {
  const response = await fetch(url + path);
  const given = /pageToken=([\w-]+)/.exec(response.headers.get("link") ?? "")?.[1];
  if (given === undefined) throw new Error(`${path} has no second page.`);
  const mark = Buffer.from(given, "base64url").toString().split(".").at(-1);
  return (below) => Buffer.from(`${below}.${mark}`).toString("base64url");
}
