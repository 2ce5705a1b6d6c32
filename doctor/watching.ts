/** Looks again and again at all that a running petstore has stored, so slowly that no call notices, for a metric. */
import type { realTime } from "@petstore/runtime/clock";
import { serviceNames } from "../processes/names.ts";
import { figuresOf } from "./findings.ts";
import { type AllInspected, look, lookTwice } from "./look.ts";
import { inPieces, openLive, type Ports } from "./stores.ts";

const PAGE = 50;
const PAUSE_MS = 100;
/** Between two looks, in milliseconds. */
const BETWEEN_MS = 5_000;

/** How many findings there are of each invariant, at most 1,000 of each. Throws if it can't look. */
export async function countViolations(ports: Ports, time: Pick<typeof realTime, "clock" | "sleep">, stop: AbortSignal) {
  await using open = await openLive(ports, stop);
  const pause = (ms = PAUSE_MS) => time.sleep(ms, stop);
  const stores = Object.fromEntries(
    serviceNames.map((service) => [service, slowly(open.inspected[service], pause)]),
  ) as unknown as AllInspected;
  const lookOnce = async () => (await look(stores, { clock: time.clock })).list();
  return figuresOf(await lookTwice(lookOnce, () => pause(BETWEEN_MS)));
}

/** The same in small pages, with a pause before each. */
function slowly(of: AllInspected["pet"], pause: () => Promise<unknown>): AllInspected["pet"] {
  return {
    ...of,
    async page(collection, _, after) {
      await pause();
      return of.page(collection, PAGE, after);
    },
    many: inPieces(PAGE, async (collection, ids) => {
      await pause();
      return of.many(collection, ids);
    }),
  };
}
