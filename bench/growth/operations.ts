/** The requests to a petstore that has grown. Each request uses another pet, category or deep page than the one before. */
import { placing, type Workload, workloads } from "../load/workloads.ts";
import { upTo } from "../seed/random.ts";

const LIMIT = 20;
const all = `/pets?limit=${LIMIT}`;
const onHold = `${all}&status=pending`;

/** Enough to keep a small machine busy. */
const CONNECTIONS = [16];
const named = (name: string) => workloads.filter((workload) => workload.name === name);

const listing = (name: string, title: string, path: (pets: number, random: () => number) => string): Workload => ({
  ...{ name, title, connections: CONNECTIONS },
  request: (pets, random) => ({ method: "GET", path: path(pets, random) }),
});

/** A random id between the first and the last tenth. */
const deep = (pets: number, random: () => number) => Math.floor(pets / 10) + upTo(Math.floor((pets * 8) / 10), random);

/** The workloads for the petstore at `url`. Page tokens contain a mark of their list, which is read from its answers. */
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
    placing,
  ].map((workload) => ({ ...workload, connections: CONNECTIONS }));
}

/** Makes page tokens for a list, which start below a given id. Their format is that of `services/records/page.ts`. */
async function tokens(url: string, path: string): Promise<(below: number) => string> {
  const response = await fetch(url + path);
  const given = /pageToken=([\w-]+)/.exec(response.headers.get("link") ?? "")?.[1];
  if (given === undefined) throw new Error(`${path} has no second page.`);
  const mark = Buffer.from(given, "base64url").toString().split(".").at(-1);
  return (below) => Buffer.from(`${below}.${mark}`).toString("base64url");
}
