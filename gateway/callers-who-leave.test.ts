/** Callers who leave before they have an answer: their calls end, and an operator is not warned. */
import { request as requestOverHttp1 } from "node:http";
import { connect as connectOverHttp2, constants } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway } from "./fixtures/gateway.ts";

const WARN = 40;

/** Starts a request whose service does not answer, leaves once the service has the call, and resolves to the log. */
async function leave(by: (port: number) => () => void) {
  const called = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const { app, port, log } = await startGateway(PetService, {
    getPet: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          reject(signal.reason);
          ended.resolve();
        });
        called.resolve();
      }),
  });
  onTestFinished(() => app.close());
  const go = by(port);
  await called.promise;
  go();
  await ended.promise;
  const lines = () => log.map((line) => JSON.parse(line) as { level: number; msg?: string; status?: number });
  await expect.poll(() => lines().some(({ msg }) => msg === "UNAVAILABLE")).toBe(true);
  return lines();
}

test("one that closes its connection of HTTP/1.1", async () => {
  const lines = await leave((port) => {
    const request = requestOverHttp1({ port, path: "/pets/1" }).end();
    request.on("error", () => {});
    return () => request.destroy();
  });
  expect(lines.filter(({ level }) => level >= WARN)).toEqual([]);
});

test("one that resets its stream of HTTP/2", async () => {
  const lines = await leave((port) => {
    const session = connectOverHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":path": "/pets/1" }).on("error", () => {});
    return () => stream.close(constants.NGHTTP2_CANCEL);
  });
  expect(lines.filter(({ level }) => level >= WARN)).toEqual([]);
  expect(lines.flatMap(({ status }) => status ?? [])).toEqual([499]);
});
