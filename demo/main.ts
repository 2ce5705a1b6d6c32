/** `npm run demo`: fills the petstore with a shop, and keeps it busy. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createPetstore } from "@petstore/client";
import { seededRandom } from "@petstore/runtime/clock";
import { wholeNumber } from "../bench/options.ts";
import { createProgress, showStatus } from "../bench/progress.ts";
import { advice } from "./advice.ts";
import { fill } from "./fill.ts";
import { type Counts, keepBusy } from "./keep-busy.ts";
import { MAX_PETS, planShop } from "./shop.ts";

const MAX_RATE = 50;

const help = `npm run demo -- [options]     fills the petstore with a shop, and keeps it busy until Ctrl-C

What is there already is left as it is, so it may be run again.

options
  --url URL        where the petstore is. Without this and without PETSTORE_URL it is
                   http://127.0.0.1:8080, or at the port that PORT_BASE says
  --seed 1         draws the shop: the same seed, the same shop
  --pets 300       how many there are to be, ${MAX_PETS} at most
  --rate 3         changes a second, ${MAX_RATE} at most
  --changes N      ends after so many changes; with 0 it fills and no more
  --help

CREDENTIAL is the API key or the token that is shown, where the petstore asks for one. For https by an authority of
your own, NODE_EXTRA_CA_CERTS names its certificate.
`;

const options = {
  url: { type: "string", default: process.env.PETSTORE_URL || `http://127.0.0.1:${process.env.PORT_BASE || 8080}` },
  seed: { type: "string", default: "1" },
  pets: { type: "string", default: "300" },
  rate: { type: "string", default: "3" },
  changes: { type: "string" },
  help: { type: "boolean", default: false },
} as const;

const stop = new AbortController();
process.once("SIGINT", () => stop.abort()).once("SIGTERM", () => stop.abort());

async function demo(): Promise<void> {
  const { values } = parseArgs({ options });
  if (values.help) return void process.stdout.write(help);
  const { url } = values;
  const seed = wholeNumber("--seed", values.seed);
  const pets = atMost(MAX_PETS, "--pets", values.pets);
  const rate = atMost(MAX_RATE, "--rate", values.rate);
  const changes =
    values.changes === undefined || values.changes === "0"
      ? Number(values.changes ?? Number.POSITIVE_INFINITY)
      : wholeNumber("--changes", values.changes);
  if (!URL.canParse(url)) throw new Error(`--url must be an address such as http://127.0.0.1:8080, not ${url}.`);

  const { signal } = stop;
  const { say, bar } = createProgress();
  const credential = process.env.CREDENTIAL;
  const petstore = createPetstore({ baseUrl: url, ...(credential && { credential }) });
  const planned = planShop(seed, pets);
  try {
    const all = await fill(petstore, { planned, signal, bar: (total) => bar(`Filling ${url}`, total) });
    const what = `The shop has ${all.length} pets at ${url}.`;
    if (changes === 0) return say(what);
    say(`${what} About ${rate} changes a second; Ctrl-C ends it.`);
    const random = seededRandom(seed);
    const pause = () => sleep((1000 / rate) * (0.5 + random()), undefined, { signal }).catch(() => {});
    const tell = (did: string, counts: Counts) => showStatus(fitting(`${inWords(counts)} | ${did}`));
    const counts = await keepBusy(petstore, all, { random, pause, signal, changes, tell });
    showStatus("");
    say(`${inWords(counts)}. Everything is as it was left; run it again to go on.`);
  } catch (error) {
    if (signal.aborted) return say("\nStopped. Run it again to go on.");
    throw new Error(advice(error, url));
  }
}

function atMost(max: number, name: string, text: string): number {
  const number = wholeNumber(name, text);
  if (number > max) throw new Error(`${name} can be ${max} at most, not ${text}.`);
  return number;
}

/** Cuts the text to one line of the terminal. */
const fitting = (text: string): string => text.slice(0, Math.max(0, (process.stderr.columns ?? 80) - 1));

const inWords = ({ order, complete, cancel, refill, missed }: Counts): string =>
  `${order} ordered, ${complete} delivered, ${cancel} cancelled, ${refill} refilled` +
  (missed > 0 ? `, ${missed} missed` : "");

try {
  await demo();
} catch (error) {
  showStatus("");
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
