/** What a link carries, between a client and a service as they are in life. */
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { reasonOf } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { DomainError } from "../domain-error.ts";
import { ask, askAll, failures, openTo, startLinked, startService, watchRequests } from "../fixtures/linked.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { implement } from "../server/handlers.ts";

describe("calls", () => {
  test("go over one stream, those of one tick and later ones, and each gets its own answer", async () => {
    const requests = watchRequests();
    const { client } = await startLinked();
    for (const count of [50, 1, 3]) {
      const results = await askAll(client, count);
      expect(results.map((r) => r.status === "fulfilled" && r.value.op)).toEqual(results.map((_, i) => BigInt(i)));
    }
    expect(requests).toEqual(["Link"]);
  });

  test("are answered, ten thousand at once", async () => {
    const { client } = await startLinked();
    const results = await askAll(client, 10_000);
    expect(failures(results)).toEqual([]);
    expect(results.every((r, i) => r.status === "fulfilled" && r.value.op === BigInt(i))).toBe(true);
  });

  test("keep their own headers both ways", async () => {
    const { client } = await startLinked(({ categoryId }, call) => {
      call.responseHeaders.set("answered-to", `${call.requestId} ${call.caller} ${call.headers.get("x-more")}`);
      return { op: categoryId };
    });
    const seen = await Promise.all(
      ["one", "two"].map(async (id) => {
        let answer: string | null = null;
        const onHeader = (headers: Headers) => {
          answer = headers.get("answered-to");
        };
        await ask(client, 1, {
          headers: { "x-request-id": id, "x-internal-caller": `user-${id}`, "x-more": id },
          onHeader,
        });
        return answer;
      }),
    );
    expect(seen).toEqual(["one user-one one", "two user-two two"]);
  });

  test("may say any time", async () => {
    const { client } = await startLinked();
    const times = [undefined, 0.5, 1e6, 2 ** 40, Number.NaN];
    const calls = await Promise.allSettled(
      times.map((timeoutMs) => ask(client, 1, timeoutMs === undefined ? {} : { timeoutMs })),
    );
    expect(failures(calls).filter(({ code }) => code !== Code.DeadlineExceeded)).toEqual([]);
  });

  test("fail one by one, with reason, message and details", async () => {
    const { client } = await startLinked(({ categoryId }) => {
      if (categoryId % 2n === 1n) throw new DomainError("CATEGORY_NOT_FOUND", `no ${categoryId}`);
      return { op: categoryId };
    });
    const failed = failures(await askAll(client, 4));
    expect(failed.map((e) => [e.code, e.rawMessage, reasonOf(e)?.reason])).toEqual([
      [Code.NotFound, "no 1", "CATEGORY_NOT_FOUND"],
      [Code.NotFound, "no 3", "CATEGORY_NOT_FOUND"],
    ]);
  });

  test("are answered as each is ready: a slow one keeps nobody waiting", async () => {
    const slow = Promise.withResolvers<void>();
    const { client } = await startLinked(async ({ categoryId }) => {
      if (categoryId === 0n) await slow.promise;
      return { op: categoryId };
    });
    const late = ask(client, 0);
    expect((await ask(client, 7)).op).toBe(7n);
    slow.resolve();
    expect((await late).op).toBe(0n);
  });
});

describe("messages of any legal size", () => {
  const { getCategory } = CategoryService.method;
  /** A category service with descriptions of so many bytes. */
  async function open(describe: (id: bigint) => number) {
    const answer = (id: bigint) => ({ category: { id, description: "x".repeat(describe(id)) } });
    const handlers = {
      getCategory: ({ categoryId }: { categoryId: bigint }) => answer(categoryId),
      createCategory: () => answer(0n),
    };
    const implementation = implement(
      CategoryService,
      new Proxy(handlers, { get: (known, name) => known[name as "getCategory"] ?? (() => ({})) }) as never,
    );
    const { url } = await startService(undefined, implementation);
    const client = createClient(CategoryService, openTo(url));
    const read = (ids: readonly number[]) =>
      Promise.allSettled(ids.map((id) => client.getCategory({ categoryId: BigInt(id) })));
    const create = (name: string) => client.createCategory({ category: { name } });
    return { read, create };
  }
  /** So that the whole message has exactly the size of the limit. */
  const full = (() => {
    const frame = toBinary(
      getCategory.output,
      create(getCategory.output, { category: { id: 1n, description: "x".repeat(MAX_MESSAGE_BYTES - 100) } }),
    ).length;
    return MAX_MESSAGE_BYTES - 100 + (MAX_MESSAGE_BYTES - frame);
  })();

  test("are answered in one tick, however many are ready", async () => {
    const { read } = await open((id) => 100_000 + Number(id));
    const results = await read(Array.from({ length: 50 }, (_, id) => id));
    expect(failures(results)).toEqual([]);
    for (const [id, result] of results.entries())
      expect(result.status === "fulfilled" && result.value.category?.description?.length).toBe(100_000 + id);
  });

  test("one that is larger than any may be fails by itself", async () => {
    const { read } = await open((id) => (id === 1n ? full + 1 : full));
    const results = await read([1, 2, 3]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(failures(results).map(({ code }) => code)).toEqual([Code.ResourceExhausted]);
  });

  test("are asked for in one tick, however many there are", async () => {
    const { create } = await open(() => 10);
    const names = Array.from({ length: 300 }, () => "ä".repeat(200));
    expect(failures(await Promise.allSettled(names.map(create)))).toEqual([]);
  });

  test("go by themselves when they are big", async () => {
    const requests = watchRequests();
    const { read, create } = await open(() => 10);
    expect(failures(await read([1]))).toEqual([]);
    await create("x".repeat(40_000)).catch(() => {}); // its name is longer than any may be
    expect(requests).toEqual(["Link", "CreateCategory"]);
  });
});
