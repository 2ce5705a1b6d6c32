/** Many callers behind one proxy, whom only `X-Forwarded-For` tells apart: what is counted by address counts each of them. */
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { reasonOf } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { defaultLimits } from "../../packages/rpc/http/limits.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore({ env: { TRUST_PROXY: "127.0.0.1" } });
});
afterAll(() => petstore?.stop());

const caller = (number: number) => `192.0.2.${number}`;

describe.each([
  ["the gateway", "gateway", "GET", "/healthz", ""],
  ["a service", "pet", "POST", "/grpc.health.v1.Health/Check", "{}"],
] as const)("%s", (_, name, method, path, body) => {
  test("keeps more connections of a proxy than one address may have", async () => {
    const count = 650;
    expect(count).toBeGreaterThan(defaultLimits.connectionsPerAddress ?? 0);
    const agent = new Agent({ keepAlive: true, maxFreeSockets: count });
    onTestFinished(() => agent.destroy());
    const ask = async (number: number) => {
      const headers = { "content-type": "application/json", "x-forwarded-for": caller(number % 250) };
      const asked = request(petstore.url(name) + path, { method, headers, agent }).end(body);
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      answer.resume();
      await once(answer, "end");
      return `${answer.statusCode} ${asked.reusedSocket ? "again" : "first"}`;
    };
    const all = (said: string) => Array.from({ length: count }, () => said);
    const askAll = () => Promise.all(all("").map((_, number) => ask(number)));
    expect(await askAll()).toEqual(all("200 first"));
    expect(await askAll()).toEqual(all("200 again"));
  });

  test("counts the streams of each of its callers", async () => {
    const transport = createConnectTransport({ baseUrl: petstore.url(name), httpVersion: "1.1" });
    const client = createClient(PetService, transport);
    const begin = async (number: number) => {
      const gone = new AbortController();
      onTestFinished(() => gone.abort());
      const options = { headers: { "x-forwarded-for": caller(number) }, signal: gone.signal };
      try {
        await client.watchPets({ snapshot: true }, options)[Symbol.asyncIterator]().next();
        return "begun";
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return `${Code[error.code]} ${reasonOf(error)?.reason}`;
      }
    };
    const begun = Array.from({ length: 20 }, () => "begun");
    for (const number of [1, 2, 3]) {
      expect(await Promise.all(begun.map(() => begin(number)))).toEqual(begun);
      expect(await begin(number)).toBe("ResourceExhausted TOO_MANY_STREAMS");
    }
  });
});
