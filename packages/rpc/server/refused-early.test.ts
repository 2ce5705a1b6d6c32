/** What a service refuses before it reads the message: by the head alone, and so that its client gets the answer. */
import { describe, expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import type { Authentication } from "../auth/authentication.ts";
import { startTicker } from "../fixtures/ticker.ts";
import { headOf, statusInPlaceOfContinue, tcp, upload } from "../fixtures/upload.ts";

const authentication: Authentication = {
  async admit({ apiKey }) {
    if (apiKey === "wrong") throw errors.rpcError("UNAUTHENTICATED", "The key is not valid.");
    return { id: "ann" };
  },
  recheck: () => () => {},
  recheckAll: async () => {},
};
const started = () => startTicker(async function* () {}, { authentication, allowedHosts: ["localhost"] });

const json = { "content-type": "application/json" };
const WAIT = "POST /ticker.v1.TickerService/Wait";
const MEGABYTES = 5_000_000;

describe.each<[status: number, what: string, line: string, fields: Record<string, string>]>([
  [401, "no valid key", WAIT, { ...json, "x-api-key": "wrong" }],
  [404, "no such RPC", "POST /ticker.v1.TickerService/Nope", json],
  [404, "no RPC at all", "POST /nope", { "content-type": "text/plain" }],
  [405, "another method", "PUT /ticker.v1.TickerService/Wait", json],
  [415, "another type", WAIT, { "content-type": "text/plain" }],
  [421, "another host", WAIT, { ...json, host: "evil.example" }],
  [429, "a message that is too large", WAIT, json],
])("%i: %s", (status, _, line, fields) => {
  const head = headOf(line, { ...fields, "content-length": MEGABYTES });

  test("is the answer in place of 100 Continue", async () => {
    expect(await statusInPlaceOfContinue((await started()).port, head)).toBe(status);
  });

  test.each(["keep-alive", "close"])("is read by a client that first sends megabytes, with %s", async (connection) => {
    const { port } = await started();
    const answer = await upload(tcp(port), `${head}connection: ${connection}\r\n\r\n`, Buffer.alloc(MEGABYTES));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    // Connect's answers without a body say so by an empty chunk.
    if (status !== 405 && status !== 415) expect(answer).toMatch(/\r\ncontent-length: \d/i);
  });
});

test("who waits for 100 Continue gets it where the message is wanted", async () => {
  const head = headOf(WAIT, { ...json, "content-length": 2 });
  expect(await statusInPlaceOfContinue((await started()).port, head)).toBe(100);
});
