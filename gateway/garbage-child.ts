/** A gateway that is asked until V8 has compiled it, and then prints what part of what was new its collections have kept. */
import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { GCProfiler } from "node:v8";
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { runProcess } from "@petstore/runtime/lifecycle";
import { createLogger } from "@petstore/runtime/log";
import { GetPetResponseSchema, PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway } from "./testing.ts";

const REQUESTS = 20_000;

const message = create(GetPetResponseSchema, { pet: { name: "Rex" } });
const nothing = new Headers();
const transport = {
  unary: async (method: DescMethodUnary) => {
    await nextTurn();
    return { stream: false, method, service: method.parent, header: nothing, trailer: nothing, message };
  },
} as unknown as Transport;

await runProcess(async (stack) => {
  const log = createLogger({ service: "gateway", level: "warn", format: "json" });
  const { app, port } = await startGateway(PetService, {}, { log, services: [{ desc: PetService, transport }] });
  stack.defer(() => app.close());
  const socket = connect(port, "127.0.0.1");
  let asked = 0;
  let done = () => {};
  const ask = () => {
    if (asked++ % REQUESTS === 0) done();
    socket.write("GET /pets/1 HTTP/1.1\r\nHost: petstore\r\n\r\n");
  };
  const answered = () =>
    new Promise<void>((resolve) => {
      done = resolve;
    });
  socket.on("data", ask);
  await once(socket, "connect");
  ask();
  await answered();
  const profiler = new GCProfiler();
  profiler.start();
  await answered();
  const collections = profiler.stop().statistics.filter(({ gcType }) => gcType === "Scavenge");
  socket.destroy();
  const sum = (when: "beforeGC" | "afterGC") =>
    collections.reduce((bytes, one) => bytes + youngBytes(one[when].heapSpaceStatistics), 0);
  process.stdout.write(`kept ${sum("afterGC") / sum("beforeGC")}\n`);
  return { log, url: "nowhere" };
});

type Space = { readonly spaceName: string; readonly spaceUsedSize: number };

function youngBytes(spaces: unknown): number {
  // Its type calls them otherwise than Node does.
  return (spaces as readonly Space[]).find(({ spaceName }) => spaceName === "new_space")?.spaceUsedSize ?? Number.NaN;
}
