/** Every case, through the HTTP endpoint, by gRPC at the service, and by Connect through the gateway. */
import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { cases } from "./cases/all.ts";
import type { Case } from "./cases/case.ts";
import {
  checkEveryAnswer,
  checkHttpAnswer,
  checkHttpFailure,
  checkRpcAnswer,
  checkRpcFailure,
  sendHttp,
  sendRpc,
} from "./cases/endpoints.ts";
import { everything } from "./cases/everything.ts";
import { openShop, type Shop } from "./cases/shop.ts";
import { checkAgainstDocument } from "./openapi-validator.ts";

let petstore: Petstore;
let shop: Shop;
let document: unknown;

beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
  document = await (await fetch(`${petstore.http}/openapi.json`)).json();
});
afterAll(() => petstore?.stop());

describe.each(Object.entries(cases))("%s", (_, rules) => {
  describe.each(rules.map((one) => [one.rule, one] as const))("%s", (_, one) => {
    if (one.http) test("HTTP", () => throughHttp(one));
    if (one.rpc) test("gRPC", () => throughRpc(one, petstore.transport));
    if (one.rpc) test("Connect", () => throughRpc(one, () => petstore.endpoint));
  });
});

test("a case that leaves an endpoint out says why, and every case tells what it expects", () => {
  const all = Object.values(cases).flat();
  const silent = all.filter((one) => !(one.http && one.rpc) && !one.oneEndpoint);
  const vague = all.filter(({ http, rpc, fails, answers }) => {
    if (fails) return Boolean(http) !== Boolean(fails.http) || Boolean(rpc) !== Boolean(fails.rpc);
    return !answers;
  });
  expect([...silent, ...vague].map((one) => one.rule)).toEqual([]);
});

async function throughHttp({ given, http, fails, answers, afterwards }: Case): Promise<void> {
  const subject = await given?.(shop);
  const call = typeof http === "function" ? http(subject) : http;
  const expected = answers?.(subject).http;
  if (!call) return;
  const seen = await unlessRefused(fails, () => sendHttp(petstore.http, call));
  checkEveryAnswer(seen);
  if (fails) checkHttpFailure(seen, fails);
  else if (expected) checkHttpAnswer(seen, expected);
  else expect.fail("the case does not say what HTTP answers");
  const answer = { ...seen, headers: new Headers(seen.headers) };
  checkAgainstDocument(document, { method: call.method, target: call.path }, answer);
  await afterwards?.(shop, subject);
}

async function throughRpc(
  { given, rpc, fails, answers, afterwards }: Case,
  transport: (desc: DescService) => Transport,
): Promise<void> {
  const subject = await given?.(shop);
  const call = typeof rpc === "function" ? rpc(subject) : rpc;
  const expected = answers?.(subject).rpc;
  if (!call) return;
  const seen = await unlessRefused(fails, () => sendRpc(transport(call.method.parent), call));
  if (fails) checkRpcFailure(seen, fails);
  else if (expected) checkRpcAnswer(seen, expected);
  else expect.fail("the case does not say what the RPC answers");
  await afterwards?.(shop, subject);
}

/** A call that is refused has no effect. */
async function unlessRefused<T>(fails: Case["fails"], act: () => Promise<T>): Promise<T> {
  if (!fails) return act();
  const before = await everything(shop);
  const seen = await act();
  expect(await everything(shop)).toEqual(before);
  return seen;
}
