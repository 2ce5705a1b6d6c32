/** What a client adds above its connections: ambiguous failures and retries. */
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { errors, reasonOf, rpcError } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { InventoryInternalService } from "../../../proto/gen/petstore/internal/v1/inventory_internal_service_pb.ts";
import { AmbiguousFailure, markNeverRan, withAmbiguousFailures } from "./failed-call.ts";
import { pipeline } from "./pipeline.ts";

const { getCategory, createCategory, deleteCategory } = CategoryService.method;
const unsent = () => markNeverRan(new ConnectError("connection refused", Code.Unavailable));
const lost = () => new ConnectError("socket hang up", Code.Aborted);

/** A transport that fails as told, then answers; and what it was called with. */
function scripted(...failures: unknown[]) {
  const calls: { headers: Headers; timeoutMs: number | undefined }[] = [];
  const transport = {
    stream: () => Promise.reject(new Error("not used")),
    unary: async (method: DescMethodUnary, _signal: unknown, timeoutMs: number | undefined, headers: HeadersInit) => {
      calls.push({ headers: new Headers(headers), timeoutMs });
      const failure = failures.shift();
      if (failure) throw failure;
      return {
        stream: false,
        service: method.parent,
        method,
        header: new Headers(),
        trailer: new Headers(),
        message: create(method.output),
      };
    },
  } as unknown as Transport;
  return { transport, calls };
}
const call = (transport: Transport, method: DescMethodUnary, input: object = {}, timeoutMs?: number) =>
  transport.unary(method, undefined, timeoutMs, undefined, input as never).then(() => undefined, ConnectError.from);

let time = 0;
const noWait = {
  clock: () => time,
  random: () => 0.5,
  sleep: async (ms: number) => {
    time += ms;
  },
  errors,
};
const stack = (transport: Transport) => pipeline(transport, noWait);

describe("an ambiguous failure", () => {
  test.each([Code.Unavailable, Code.Aborted, Code.Internal, Code.Unknown, Code.Canceled])(
    "is unavailable (%i)",
    async (code) => {
      const { transport } = scripted(new ConnectError("read ECONNRESET at /x", code));
      const error = (await call(withAmbiguousFailures(transport, noWait), deleteCategory)) as ConnectError;
      expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "UNAVAILABLE"]);
      expect(error.rawMessage).toMatch(/^CategoryService did not answer\. A write may or may not have happened/);
    },
  );

  test.each([getCategory, deleteCategory])("is none where the call never left: $name", async (method) => {
    const { transport } = scripted(unsent());
    const error = (await call(withAmbiguousFailures(transport, noWait), method)) as ConnectError;
    expect(reasonOf(error)?.reason).toBe("UNAVAILABLE");
    expect(error.rawMessage).toBe("CategoryService can't be reached now. Nothing was done. Try again in a second.");
  });

  test("is not what a service says itself, whatever its code", async () => {
    const { transport } = scripted(rpcError("INTERNAL", "a bug"));
    expect(await call(withAmbiguousFailures(transport, noWait), getCategory)).toMatchObject({
      code: Code.Internal,
      rawMessage: "a bug",
    });
  });
});

describe("retries", () => {
  test("reads and keyed creates are repeated", async () => {
    for (const [method, input] of [
      [getCategory, {}],
      [InventoryInternalService.method.reserve, {}],
      [createCategory, { requestId: "k" }],
    ] as const) {
      const { transport, calls } = scripted(lost(), lost());
      expect(await call(stack(transport), method, input)).toBeUndefined();
      expect(calls).toHaveLength(3);
    }
  });

  test("writes that might be done twice are not", async () => {
    for (const [method, input] of [
      [deleteCategory, {}],
      [createCategory, {}],
    ] as const) {
      const { transport, calls } = scripted(lost());
      expect(await call(stack(transport), method, input)).toBeInstanceOf(AmbiguousFailure);
      expect(calls).toHaveLength(1);
    }
  });

  test("a call may have run if any attempt may have", async () => {
    const input = { requestId: "k" };
    const never = scripted(unsent(), unsent(), unsent());
    expect((await call(stack(never.transport), createCategory, input))?.rawMessage).toContain("Nothing was done");
    const once = scripted(unsent(), lost(), unsent());
    expect((await call(stack(once.transport), createCategory, input))?.rawMessage).toContain("may or may not have");
  });

  test("what a service answered is not asked again: it was nearest to the failure", async () => {
    const { transport, calls } = scripted(rpcError("UNAVAILABLE", "the store"), rpcError("OVERLOADED", "later"));
    expect((await call(stack(transport), getCategory))?.rawMessage).toBe("the store");
    expect(calls).toHaveLength(1);
  });

  test("three attempts at most, and none after the deadline", async () => {
    const often = scripted(lost(), lost(), lost(), lost());
    expect(await call(stack(often.transport), getCategory)).toBeInstanceOf(AmbiguousFailure);
    expect(often.calls).toHaveLength(3);
    const brief = scripted(lost(), lost());
    expect(await call(stack(brief.transport), getCategory, {}, 10)).toBeInstanceOf(AmbiguousFailure);
    expect(brief.calls).toHaveLength(1);
  });

  test("each attempt has what remains of the time", async () => {
    const { transport, calls } = scripted(lost());
    await call(stack(transport), getCategory, {}, 1000);
    expect(calls.map(({ timeoutMs }) => timeoutMs)).toEqual([1000, 975]);
  });

  test("a service in trouble is not buried: a tenth of the traffic, after a burst", async () => {
    let attempts = 0;
    const down = {
      unary: async () => {
        attempts++;
        throw lost();
      },
    } as unknown as Transport;
    const transport = stack(down);
    for (let i = 0; i < 1000; i++) await call(transport, getCategory);
    expect(attempts).toBeGreaterThan(1090);
    expect(attempts).toBeLessThan(1130);
  });
});
