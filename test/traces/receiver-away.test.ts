/** What receives traces may be away, or hang: callers and the end of a process do not wait for it. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { processNames } from "../../processes/names.ts";
import { startTraced } from "./petstore.ts";

test("one that takes everything and answers nothing", { timeout: 120_000 }, async () => {
  const receiver = createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  try {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    await using petstore = await startTraced({ url });
    const petId = await petstore.newPet();
    expect((await petstore.ask("POST", "/store/orders", { petId })).status).toBe(201);
    await petstore.stop();
    for (const name of processNames) {
      expect(petstore.logs(name)).toContain('"msg":"stopped"');
      expect(petstore.logs(name)).not.toContain("still not stopped");
    }
  } finally {
    receiver.close();
  }
});

test("one that is not there is in the log", { timeout: 120_000 }, async () => {
  const env = { OTEL_BSP_SCHEDULE_DELAY: "50", OTEL_EXPORTER_OTLP_TIMEOUT: "500" };
  await using petstore = await startTraced({ url: "http://127.0.0.1:1" }, { env });
  await petstore.newPet();
  await expect.poll(() => petstore.logs("gateway")).toMatch(/"level":"warn".*ECONNREFUSED.*spans can't be sent/);
});
