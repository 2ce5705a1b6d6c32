import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SEEN_HEADER } from "../call.ts";
import { createSeen, withSeen } from "./seen.ts";

/** Two services, each of which answers with what `tell` says it has seen, and the headers that they were sent. */
function bench() {
  const sent: string[] = [];
  let tell: () => string | undefined = () => undefined;
  let fails = false;
  const answer = (init: HeadersInit | undefined) => {
    sent.push(new Headers(init).get(SEEN_HEADER) ?? "none");
    const told = tell();
    const header = new Headers({ etag: '"1"', ...(told !== undefined && { [SEEN_HEADER]: told }) });
    if (fails) return Promise.reject(new ConnectError("it is gone", Code.NotFound, header));
    return Promise.resolve({ header } as never);
  };
  const transport: Transport = {
    unary: (_method, _signal, _timeoutMs, init) => answer(init),
    stream: (_method, _signal, _timeoutMs, init) => answer(init),
  };
  const seen = createSeen();
  const [pets, orders] = [withSeen(transport, seen), withSeen(transport, seen)];
  const call = (to = pets, told?: string, init: HeadersInit = { "x-request-id": "r" }) => {
    tell = () => told;
    return to.unary({} as never, undefined, undefined, init, {} as never);
  };
  return { sent, pets, orders, call, transport, fail: () => (fails = true) };
}

test("what any answer told is sent with every later call, to whichever service", async () => {
  const { sent, orders, pets, call } = bench();
  await call();
  await call(pets, "db:05");
  await call(orders);
  await call(pets, undefined, new Headers({ "x-request-id": "r" }));
  await pets.stream({} as never, undefined, undefined, {}, {} as never);
  expect(sent).toEqual(["", "", "db:05", "db:05", "db:05"]);
});

test("it is the latest of what was told, however late an answer comes", async () => {
  const { sent, call, pets } = bench();
  for (const told of ["db:05", "db:09", "db:07", undefined]) await call(pets, told);
  await call();
  expect(sent.at(-1)).toBe("db:09");
});

test("of different data it is the latest of each", async () => {
  const { sent, call, pets, orders } = bench();
  await call(pets, "db:05");
  await call(orders, "other:03");
  await call(pets, "db:06");
  await call();
  expect(sent.at(-1)).toBe("db:06 other:03");
});

test("a refusal tells as well", async () => {
  const { sent, call, pets, fail } = bench();
  fail();
  await expect(call(pets, "db:05")).rejects.toThrow("it is gone");
  await expect(call()).rejects.toThrow();
  expect(sent.at(-1)).toBe("db:05");
});

test("who gets the answer is not told", async () => {
  const { call, pets, fail } = bench();
  expect([...(await call(pets, "db:05")).header.keys()]).toEqual(["etag"]);
  fail();
  const refusal = await call(pets, "db:06").catch(ConnectError.from);
  expect([...(refusal as ConnectError).metadata.keys()]).toEqual(["etag"]);
});
