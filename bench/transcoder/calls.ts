/** The requests: unary calls as an API has them. */
import type { Request, Workload } from "../load/workloads.ts";
import { upTo } from "../seed/random.ts";

const CONNECTIONS = [32];
const SHELVES = 100;
const ITEMS = 10_000;

/** About 320 bytes of JSON. */
const small = (number: number) => ({
  title: `The Atlas of Lost Rivers, volume ${number}`,
  kind: "KIND_MAP",
  copies: "9007199254740993",
  weight: 0.75,
  cover: "bm90IHJlYWxseSBhIHBpY3R1cmU=",
  tags: ["rivers", "maps"],
  labels: { colour: "blue" },
  createTime: "2026-01-01T00:00:00.005Z",
  loan: "1209600s",
  author: { givenName: "Ada", familyName: "Okonkwo", born: 1961 },
});

/** About 5 kB of JSON. */
const large = (number: number) => ({
  ...small(number),
  chapters: Array.from({ length: 25 }, (_, i) => ({
    title: `Chapter ${i + 1}: of springs and where they went`,
    page: 10 * i + 1,
    summary: 'What the maps of 1744 call "the upper river" is shown to be two, and the lower one none at all.',
    figures: [i, i + 1, 1000 * i],
  })),
});

const shelf = (random: () => number) => `/v1/shelves/${upTo(SHELVES, random)}`;
const item = (random: () => number) => `${shelf(random)}/items/${upTo(ITEMS, random)}`;
const QUERY =
  "?kind=KIND_BOOK&readMask=title,author.givenName&at=2026-01-01T00:00:00Z&versions=1&versions=2&reader.familyName=Lind";

const call = (name: string, title: string, request: (random: () => number) => Request): Workload => ({
  name,
  title,
  connections: CONNECTIONS,
  request: (_, random) => request(random),
});

export const calls: readonly Workload[] = [
  call("get", "GET, six parameters, 500 bytes of answer", (random) => ({ method: "GET", path: item(random) + QUERY })),
  call("list", "GET, 20 items, 10 kB of answer", (random) => ({
    method: "GET",
    path: `${shelf(random)}/items?pageSize=20&filter=kind%3DMAP`,
  })),
  call("create", "POST of 320 bytes", (random) => ({
    method: "POST",
    path: `${shelf(random)}/items`,
    body: JSON.stringify(small(upTo(ITEMS, random))),
  })),
  call("create-large", "POST of 5 kB", (random) => ({
    method: "POST",
    path: `${shelf(random)}/items`,
    body: JSON.stringify(large(upTo(ITEMS, random))),
  })),
  call("update", "PATCH of three members", (random) => ({
    method: "PATCH",
    path: item(random),
    body: JSON.stringify({ title: `Volume ${upTo(ITEMS, random)}`, copies: "3", author: { born: 1961 } }),
  })),
];
