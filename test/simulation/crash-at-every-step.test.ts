/**
 * Every operation, with the process killed at each of the steps that it takes (every read, write and named point), and with
 * each of the calls on its way arriving when nobody waits for it any more.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { serviceNames } from "../../processes/names.ts";
import type { Outcome } from "../workload/perform.ts";
import { prepare, record } from "../workload/recording.ts";
import { meanwhile, scenarios, tooEarly } from "../workload/scenarios.ts";
import { noFaults, oneLateCall } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

/** Without what another crash may change: ids leave gaps, and a change may be stored in two steps. */
const essence = (outcome: Outcome) => (outcome.is === "done" ? { is: "done", view: outcome.shown?.view } : outcome);

describe.each(scenarios)("$name", (scenario) => {
  test.each([
    ["asked again until it is known how it ended", true],
    ["left to the workers", false],
  ])("killed at every step and %s, leaves nothing lost, doubled or stuck", async (_, again) => {
    const { steps, outcome: calmOutcome } = await record(scenario);
    expect(steps.length).toBeGreaterThan(0);
    for (const last of steps.keys()) {
      const { cluster, checker, client } = await prepare(scenario);
      let taken = 0;
      cluster.injectFaults({ ...noFaults, dies: () => taken++ === last });
      const outcome = await cluster.until(again ? client.do(scenario.act) : client.once(scenario.act));
      await cluster.untilIdle();
      await cluster.settle();
      expect([steps[last], ...checker.verdict()]).toEqual([steps[last]]);
      expect(taken).toBeGreaterThan(last);
      if (outcome.is !== "unknown") expect(essence(outcome)).toEqual(essence(calmOutcome));
      else if (again) expect(scenario.act.key).toBeUndefined();
    }
  });
});

/** When late calls arrive, when clients go on meanwhile, and when all is over: recovery workers have given up all by then. */
const [MEANWHILE_S, LATE_S, OVER_S] = [10, 15, 20];

describe.each([...scenarios, tooEarly])("$name", (scenario) => {
  test("with a call that arrives long after its caller died, leaves nothing lost, doubled or stuck", async () => {
    for (let late = 0, sent = late + 1; sent > late; late++) {
      const { cluster, checker, client } = await prepare(scenario);
      const call = oneLateCall(late, LATE_S * 1_000, cluster.kill);
      cluster.injectFaults(call.faults);
      await cluster.until(client.once(scenario.act));
      for (let second = 0; second < OVER_S; second++) {
        cluster.advance(1_000);
        for (const name of serviceNames) await cluster.until(cluster.runWorkers(name));
        if (second === MEANWHILE_S) for (const operation of meanwhile) await cluster.until(client.once(operation));
      }
      await cluster.settle();
      expect([late, ...checker.verdict()]).toEqual([late]);
      sent = call.sent();
    }
  });
});
