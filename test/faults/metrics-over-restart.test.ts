/** Two of every process, restarted in turn under load: what all of them counted is what was asked, to the last request. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { METRICS } from "../../processes/metrics.ts";
import { adminPortOf, type ProcessName, processNames } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { type Launched, launch, procMissing } from "../harness/launched.ts";
import { mongodbMissing, openPlace } from "../harness/mongodb.ts";
import { sumOf } from "../harness/samples.ts";

const REPLICAS = 2;
const CLIENTS = 4;
const LAME_DUCK = "6s";
/** So long after a gateway was told to stop, whoever balances the load has noticed, and sends it no more. */
const NOTICED_MS = 1_000;
const READ_EVERY_MS = 20;
/** Before the next one, as an orchestrator waits: it can't see whether the callers of a process have come back to it. */
const MIN_READY_MS = 3_000;

/** Reads a process as often as it can, and keeps what each of its lives told last. */
function follow(url: string) {
  const lives: string[] = [];
  let isOver = false;
  const reading = (async () => {
    let uptime = Number.POSITIVE_INFINITY;
    while (!isOver) {
      const text = await fetch(url).then(
        (answer) => answer.text(),
        () => undefined, // it is being restarted
      );
      const now = text === undefined ? undefined : sumOf([text], METRICS.uptime.name);
      if (text !== undefined && now !== undefined) {
        if (now < uptime) lives.push("");
        lives[lives.length - 1] = text;
        uptime = now;
      }
      await sleep(READ_EVERY_MS);
    }
  })();
  const stop = () => {
    isOver = true;
    return reading;
  };
  return { lives, stop };
}

describe.skipIf(mongodbMissing || procMissing)("two of every process, restarted in turn", () => {
  test("no request is missing in the sums, and none counts twice", { timeout: 600_000 }, async () => {
    await using place = await openPlace();
    await using petstore: Launched = await launch(place.uri, REPLICAS, { LAME_DUCK });
    const portBase = Number(new URL(petstore.http).port);
    const replicas = new Map<ProcessName, number>(processNames.map((name) => [name, REPLICAS]));
    const all = (["gateway", "pet"] as const).flatMap((name) =>
      [1, 2].map((replica) => follow(`http://127.0.0.1:${adminPortOf(name, portBase, replica, replicas)}/metrics`)),
    );
    const lives = () => all.flatMap((one) => one.lives);
    const sum = (name: keyof typeof METRICS, labels: Readonly<Record<string, string>>) =>
      sumOf(lives(), `${METRICS[name].name}_count`, labels) ?? 0;

    let asked = 0;
    const answered = new Map<number, number>();
    let isOver = false;
    let goOn = Promise.resolve();
    const load = Array.from({ length: CLIENTS }, async () => {
      while (!isOver) {
        await goOn;
        // Each has an id of its own: equal reads at the same time would share a call.
        const answer = await fetch(`${petstore.http}/pets/${++asked}`);
        await answer.arrayBuffer();
        answered.set(answer.status, (answered.get(answer.status) ?? 0) + 1);
      }
    });
    for (const name of ["gateway-1", "pet-1", "gateway-2", "pet-2"]) {
      const restarted = petstore.restart(name);
      await sleep(NOTICED_MS);
      // Gateways share their port, so nobody can send to the other alone. What is asked up to the last moment nobody can read.
      if (name.startsWith("gateway")) goOn = restarted;
      await restarted;
      await sleep(MIN_READY_MS);
    }
    isOver = true;
    await Promise.all(load);
    const route = { http_route: "/pets/{petId}" };
    for (const [status, count] of answered)
      await eventually(async () => sum("requests", { ...route, http_response_status_code: `${status}` }), count);
    expect(sum("requests", route)).toBe(asked);
    // With all its attempts a call counts once.
    const method = { rpc_method: `${PetService.typeName}/GetPet`, rpc_status_code: "not_found" };
    expect(sum("called", method)).toBe(answered.get(404));
    expect(answered.get(404)).toBeGreaterThan(100);
    expect(all.map((one) => one.lives.length)).toEqual([2, 2, 2, 2]);
    await Promise.all(all.map(({ stop }) => stop()));
  });
});
