import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { failure, startTestService, type TestService } from "../records/fixtures/service.ts";
import { createCategoryService } from "./service.ts";

let service: TestService;
let pets: { membership: Membership; down: boolean; calls: string[]; beforeClose?: (() => Promise<void>) | undefined };
beforeEach(async () => {
  pets = { membership: Membership.NONE, down: false, calls: [] };
  const answer = <T>(call: string, value: T): Promise<T> => {
    pets.calls.push(call);
    return pets.down ? Promise.reject(new ConnectError("down", Code.Unavailable)) : Promise.resolve(value);
  };
  const peer = {
    async closeCategory({ op }: { op: bigint }) {
      const { beforeClose } = pets;
      pets.beforeClose = undefined;
      await beforeClose?.();
      return answer(`close ${op}`, { membership: pets.membership });
    },
    openCategory: ({ op }: { op: bigint }) => answer(`open ${op}`, {}),
  };
  service = await startTestService((deps) =>
    createCategoryService(deps, { pets: peer } as unknown as PeersOf<"category">),
  );
});
const categories = () => service.client(CategoryService);
const make = async (name = "dogs") => (await categories().createCategory({ category: { name } })).category?.id ?? 0n;
const exists = async (id: bigint) => (await categories().listCategories({ id: [id] })).categories.length === 1;

describe("DeleteCategory", () => {
  test("closes the deletion guard, finds no members, and the category is deleted", async () => {
    const id = await make();
    await categories().deleteCategory({ categoryId: id });
    expect(pets.calls).toEqual(["close 1"]);
    expect(await failure(categories().getCategory({ categoryId: id }))).toBe("CATEGORY_NOT_FOUND");
    expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("CATEGORY_NOT_FOUND");
    expect(await exists(id)).toBe(false);
  });

  test("with pets in it steps back first, then opens the deletion guard", async () => {
    const id = await make();
    pets.membership = Membership.SOME;
    expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("CATEGORY_IN_USE");
    expect(pets.calls).toEqual(["close 1", "open 1"]);
    expect((await categories().getCategory({ categoryId: id })).category?.etag).toBe('"1"');
  });

  test("opens no deletion guard after a step back that a concurrent attempt has stored", async () => {
    const id = await make();
    pets.membership = Membership.SOME;
    pets.beforeClose = async () =>
      expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("CATEGORY_IN_USE");
    expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("CATEGORY_IN_USE");
    expect(pets.calls).toEqual(["close 1", "open 1", "close 2", "open 2", "close 1"]);
  });

  test("that joined one which met pets looks again itself, for they may have left before it began", async () => {
    const id = await make();
    const get = () => (pets.calls.includes("open 1") ? Membership.NONE : Membership.SOME);
    Object.defineProperty(pets, "membership", { get });
    let joined: string | undefined = "not called";
    pets.beforeClose = async () => {
      joined = await failure(categories().deleteCategory({ categoryId: id }));
    };
    await failure(categories().deleteCategory({ categoryId: id }));
    expect(joined).toBeUndefined();
    expect(await exists(id)).toBe(false);
    expect(pets.calls.slice(0, 3)).toEqual(["close 1", "open 1", "close 2"]);
  });

  test("decides nothing on a stale answer, in a race with a later deletion", async () => {
    const id = await make();
    pets.membership = Membership.STALE;
    expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("UNAVAILABLE");
    expect(await exists(id)).toBe(true);
    pets.membership = Membership.NONE;
    await service.runWorkers();
    expect(await exists(id)).toBe(false);
  });

  test("that Pet did not answer is unknown, and the recovery worker finishes it", async () => {
    const id = await make();
    pets.down = true;
    expect(await failure(categories().deleteCategory({ categoryId: id }))).toBe("UNAVAILABLE");
    expect(await failure(categories().updateCategory({ categoryId: id, category: { name: "x" } }))).toBe("UNAVAILABLE");
    pets.down = false;
    pets.membership = Membership.SOME;
    const { category } = await categories().updateCategory({ categoryId: id, category: { name: "hounds" } });
    expect(category).toMatchObject({ name: "hounds", etag: '"2"' });
  });

  test.each(["category.deleting", "category.closed", "category.active-again"])(
    "survives a crash at %s",
    async (point) => {
      const id = await make();
      pets.membership = Membership.SOME;
      service.crashAt(point);
      await failure(categories().deleteCategory({ categoryId: id }));
      expect(service.reached).toContain(point);
      service.crashAt(undefined);
      await service.restart();
      await service.runWorkers();
      const state = await service.client(CategoryInternalService).getCategoryState({ categoryId: id });
      expect(state).toMatchObject({ state: CategoryState.ACTIVE, op: 1n });
      pets.membership = Membership.NONE;
      await categories().deleteCategory({ categoryId: id });
      expect(pets.calls.at(-1)).toBe("close 2");
    },
  );
});

describe("the rest", () => {
  test("an update that has little time is begun, and never refused for a deletion where there is none", async () => {
    const [id, timeoutMs] = [await make(), 90];
    const reasons = [
      await failure(categories().updateCategory({ categoryId: id, category: { name: "hounds" } }, { timeoutMs })),
      await failure(categories().updateCategory({ categoryId: 99n, category: { name: "hounds" } }, { timeoutMs })),
    ];
    expect(reasons).not.toContain("CONCURRENT_UPDATE");
  });

  test("a replace without a description removes it, a mask keeps it", async () => {
    const { category } = await categories().createCategory({ category: { name: "dogs", description: "bark" } });
    const id = category?.id ?? 0n;
    const masked = { categoryId: id, category: { name: "hounds" }, updateMask: { paths: ["name"] } };
    expect((await categories().updateCategory(masked)).category).toMatchObject({ name: "hounds", description: "bark" });
    const { category: replaced } = await categories().updateCategory({ categoryId: id, category: { name: "hounds" } });
    expect(replaced?.description).toBeUndefined();
    const empty = { categoryId: id, category: {}, updateMask: { paths: [] } };
    expect((await categories().updateCategory(empty)).category?.etag).toBe(replaced?.etag);
  });

  test("a replay is the first answer, also when the category has changed or is gone", async () => {
    const request = { category: { name: "dogs" }, requestId: "k" };
    const first = await categories().createCategory(request);
    await categories().updateCategory({ categoryId: first.category?.id ?? 0n, category: { name: "x" } });
    expect(await categories().createCategory(request)).toEqual(first);
    await categories().deleteCategory({ categoryId: first.category?.id ?? 0n });
    let replayed: string | null = null;
    const onHeader = (headers: Headers) => {
      replayed = headers.get("idempotent-replayed");
    };
    expect(await categories().createCategory(request, { onHeader })).toEqual(first);
    expect(replayed).toBe("true");
  });

  test("a batch comes in the order asked, each once, without those that are missing", async () => {
    const [a, b] = [await make("a"), await make("b")];
    const { categories: found } = await categories().batchGetCategories({ categoryId: [b, 99n, a, b, 2n ** 62n] });
    expect(found.map(({ id }) => id)).toEqual([b, a]);
  });

  test.each([0n, -1n, 2n ** 53n, 2n ** 63n - 1n])("%i names nothing", async (categoryId) => {
    expect(await failure(categories().getCategory({ categoryId }))).toBe("CATEGORY_NOT_FOUND");
    expect(await failure(categories().deleteCategory({ categoryId }))).toBe("CATEGORY_NOT_FOUND");
    expect(await failure(categories().updateCategory({ categoryId, category: { name: "x" } }))).toBe(
      "CATEGORY_NOT_FOUND",
    );
  });
});
