/** Lists by name: section 2. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { listPets } = PetService.method;
const { listCategories } = CategoryService.method;

interface Kind {
  readonly field: "pets" | "categories";
  readonly list: DescMethodUnary;
  readonly make: (shop: Shop, name: string) => Promise<{ readonly id: bigint }>;
  readonly rename: (shop: Shop, id: bigint, name: string) => Promise<unknown>;
  readonly remove: (shop: Shop, id: bigint) => Promise<unknown>;
}
const kinds: readonly Kind[] = [
  {
    field: "pets",
    list: listPets,
    make: (shop, name) => shop.pet({ name }),
    rename: ({ pets }, petId, name) => pets.updatePet({ petId, pet: { name }, updateMask: { paths: ["name"] } }),
    remove: ({ pets }, petId) => pets.deletePet({ petId }),
  },
  {
    field: "categories",
    list: listCategories,
    make: (shop, name) => shop.category({ name }),
    rename: ({ categories }, categoryId, name) => categories.updateCategory({ categoryId, category: { name } }),
    remove: ({ categories }, categoryId) => categories.deleteCategory({ categoryId }),
  },
];

/** Where names of this case begin; no other case has such. */
const beginning = (shop: Shop) => `ÉCLAIR ${shop.unique()}, `;

/** Records of these names, as they come by name: by the letters without case, then by id. */
async function named(shop: Shop, { make }: Kind, names: readonly string[]) {
  const begin = beginning(shop);
  const made: { name: string; id: bigint }[] = [];
  for (const name of names) made.push({ name, id: (await make(shop, begin + name)).id });
  const idsOf = (name: string) => made.filter((one) => one.name.toLowerCase() === name).map(({ id }) => id);
  return { begin, idsOf: (name: string) => idsOf(name).sort((a, b) => Number(a - b)) };
}

const shown = (field: string, ids: readonly bigint[], next = false) => ({
  http: {
    status: 200,
    headers: { link: next ? expect.stringMatching(/^<\/\w+\?.*name=.+pageToken=[^>]+>; rel="next"$/) : null },
    body: ids.map((id) => expect.objectContaining({ id: Number(id) })),
  },
  rpc: {
    message: {
      [field]: ids.map((id) => expect.objectContaining({ id: String(id) })),
      nextPageToken: next ? expect.stringMatching(/./) : "",
    },
  },
});
const query = (members: Readonly<Record<string, unknown>>) => new URLSearchParams(members as never).toString();

function rulesOf(kind: Kind): Case[] {
  const { field, list } = kind;
  const path = `/${field}`;
  const ask = (request: Readonly<Record<string, unknown>>) => ({
    http: { method: "GET", path: `${path}?${query(request)}` },
    rpc: { method: list, request },
  });
  const bad = (title: string, request: Readonly<Record<string, unknown>>, says: string) =>
    rule(`${field}: ${title}`, {
      ...ask(request),
      fails: { http: "400 INVALID_QUERY", rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says },
    });
  const given = (shop: Shop) => named(shop, kind, ["Rex", "max", "REX", "Re", "rexona", "tyrex", "rEX"]);

  /** A page that begins after the first one, of two. */
  const second = async (shop: Shop) => {
    const it = await given(shop);
    const lists = { pets: shop.pets.listPets, categories: shop.categories.listCategories };
    const { nextPageToken: pageToken } = await lists[field]({ name: `${it.begin}r`, limit: 2 });
    return { ...it, pageToken };
  };
  const request = ({ begin }: { begin: string }, name: string) => ({ name: begin + name });

  return [
    rule(`${field}: those whose name begins with the text, letters without case, in the order of names and ids`, {
      given,
      http: (it) => ask(request(it, "rE")).http,
      rpc: (it) => ask(request(it, "rE")).rpc,
      answers: ({ idsOf }) => shown(field, ["re", "rex", "rexona"].flatMap(idsOf)),
    }),
    rule(`${field}: the case of letters that are not ASCII`, {
      given,
      http: (it) => ask({ name: it.begin.toLowerCase() }).http,
      rpc: (it) => ask({ name: it.begin.toLowerCase() }).rpc,
      answers: ({ idsOf }) => shown(field, ["max", "re", "rex", "rexona", "tyrex"].flatMap(idsOf)),
    }),
    rule(`${field}: a name that nothing begins with`, {
      given,
      http: (it) => ask(request(it, "x")).http,
      rpc: (it) => ask(request(it, "x")).rpc,
      answers: () => shown(field, []),
    }),
    rule(`${field}: a page that goes on amid equal names`, {
      given: second,
      http: ({ pageToken, ...it }) => ask({ ...request(it, "R"), limit: 2, pageToken }).http,
      rpc: ({ pageToken, ...it }) => ask({ ...request(it, "R"), limit: 2, pageToken }).rpc,
      answers: ({ idsOf }) => shown(field, idsOf("rex").slice(1), true),
    }),
    rule(`${field}: a token of another name`, {
      given: second,
      http: ({ pageToken, ...it }) => ask({ ...request(it, "re"), pageToken }).http,
      rpc: ({ pageToken, ...it }) => ask({ ...request(it, "re"), pageToken }).rpc,
      fails: { http: "400 INVALID_PAGE_TOKEN", rpc: "INVALID_ARGUMENT INVALID_PAGE_TOKEN", says: "filter" },
    }),
    rule(`${field}: a new name counts at once, and who is deleted is gone`, {
      async given(shop) {
        const it = await named(shop, kind, ["Rex", "Max", "Re"]);
        const [max = 0n, rex = 0n] = [...it.idsOf("max"), ...it.idsOf("rex")];
        await kind.rename(shop, max, `${it.begin}Reginald`);
        await kind.remove(shop, rex);
        return { ...it, left: [...it.idsOf("re"), max] };
      },
      http: (it) => ask(request(it, "re")).http,
      rpc: (it) => ask(request(it, "re")).rpc,
      answers: ({ left }) => shown(field, left),
    }),
    rule(`${field}: identifiers beside it`, {
      given,
      http: (it) => ask({ ...request(it, "re"), id: [...it.idsOf("re"), ...it.idsOf("max")] }).http,
      rpc: (it) => ask({ ...request(it, "re"), id: [...it.idsOf("re"), ...it.idsOf("max")] }).rpc,
      answers: ({ idsOf }) => shown(field, idsOf("re")),
    }),
    rule(`${field}: names of 200 characters, whatever these are`, {
      async given(shop) {
        const begin = beginning(shop);
        const name = begin + "\u{1F415}".repeat(200 - begin.length);
        return { name, ids: [await kind.make(shop, name), await kind.make(shop, name)].map(({ id }) => id) };
      },
      http: ({ name }) => ask({ name, limit: 1 }).http,
      rpc: ({ name }) => ask({ name, limit: 1 }).rpc,
      answers: ({ ids }) => shown(field, [ids.reduce((a, b) => (a < b ? a : b))], true),
      async afterwards(shop, { name, ids }) {
        const lists = { pets: shop.pets.listPets, categories: shop.categories.listCategories };
        const { nextPageToken: pageToken } = await lists[field]({ name, limit: 1 });
        const next = (await lists[field]({ name, limit: 1, pageToken })) as never as Record<string, { id: bigint }[]>;
        expect(next[field]?.map(({ id }) => id)).toEqual([ids.reduce((a, b) => (a > b ? a : b))]);
      },
    }),
    bad("a name beside orderBy", { name: "rex", orderBy: "id" }, "name"),
    bad("a name beside the order that is the default otherwise", { name: "rex", orderBy: "-id" }, "name"),
    bad("a name of 201 characters", { name: "\u{1F415}".repeat(201) }, "200 characters"),
    bad("an empty name", { name: "" }, "name"),
    rule(`${field}: name twice`, {
      http: { method: "GET", path: `${path}?name=rex&name=max` },
      oneEndpoint: ONLY_HTTP.path,
      fails: { http: "400 INVALID_QUERY", says: "name" },
    }),
  ];
}

/** One pet of each status, of one name, in one category; and one of that name in another. */
const oneOfEach = async (shop: Shop) => {
  const { id: categoryId } = await shop.category();
  const name = `${beginning(shop)}Rex`;
  const [pending, sold] = [
    await shop.pet({ name, categoryId, status: PetStatus.PENDING }),
    await shop.pet({ name, categoryId, status: PetStatus.SOLD }),
  ];
  await shop.pet({ name, status: PetStatus.SOLD });
  return { name, categoryId, pending, sold };
};

export const names: readonly Case[] = [
  ...kinds.flatMap(rulesOf),
  rule("pets: a name beside a category and statuses", {
    given: oneOfEach,
    http: ({ name, categoryId }) => ({
      method: "GET",
      path: `/pets?${query({ name: name.toUpperCase(), categoryId, status: "sold,available" })}`,
    }),
    rpc: ({ name, categoryId }) =>
      call(listPets, { name: name.toUpperCase(), categoryId, status: [PetStatus.SOLD, PetStatus.AVAILABLE] }),
    answers: ({ sold }) => shown("pets", [sold.id]),
  }),
  rule("pets: one id beside a name comes without the pet's ETag", {
    given: (shop) => shop.pet({ name: "Rex" }),
    http: ({ id }) => ({ method: "GET", path: `/pets?id=${id}&name=Nobody`, headers: { "if-match": '"0"' } }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: () => ({ http: { status: 200, headers: { etag: null }, body: [] } }),
  }),
];
