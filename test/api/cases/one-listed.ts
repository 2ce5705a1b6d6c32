/** A list that is asked for one pet by its id answers as the pet by itself does. */
import { expect } from "vitest";
import { type Case, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

interface Subject {
  readonly id: bigint;
  readonly etag: string;
  readonly categoryId: bigint;
}
const pet = (shop: Shop): Promise<Subject> => shop.pet();

type Headers = (etag: string) => Record<string, string>;
const none: Headers = () => ({});
const read = (query: (pet: Subject) => string, headers: Headers, method = "GET") => ({
  given: pet,
  http: (subject: Subject) => ({ method, path: `/pets?${query(subject)}`, headers: headers(subject.etag) }),
  oneEndpoint: ONLY_HTTP.headers,
});
const byId = ({ id }: Subject) => `id=${id}`;

/** The list, with the pet's tag where `isOne`. */
const listed = (name: string, query: (pet: Subject) => string, isOne: boolean, headers = none, count = 1): Case =>
  rule(name, {
    ...read(query, headers),
    answers: ({ etag }) => ({
      http: {
        status: 200,
        headers: { etag: isOne ? etag : null },
        body: Array.from({ length: count }, () => expect.any(Object)),
      },
    }),
  });
const holds: readonly (readonly [string, Headers])[] = [
  ["its tag", (etag) => ({ "if-none-match": etag })],
  ["its tag as a weak one", (etag) => ({ "if-none-match": `W/${etag}` })],
  ["anything", () => ({ "if-none-match": "*" })],
  ["its tag twice", (etag) => ({ "if-match": etag, "if-none-match": etag })],
];
const unknown = () => "id=9007199254740991";

export const oneListed: readonly Case[] = [
  listed("one id: the pet's ETag", byId, true),
  listed("one id beside what filters nothing", (it) => `limit=1&orderBy=id&pageToken=&unknown=1&${byId(it)}`, true),
  listed("one id twice", (it) => `${byId(it)}&${byId(it)}`, false),
  listed("one id and another that no pet has", (it) => `${byId(it)},9007199254740991`, false),
  listed("one id and another filter", (it) => `${byId(it)}&status=available`, false),
  listed("no id but another filter", ({ categoryId }) => `categoryId=${categoryId}`, false),
  listed("one id that no pet has", unknown, false, none, 0),
  listed("conditions on what is not found", unknown, false, () => ({ "if-match": "*", "if-none-match": "1" }), 0),
  listed(
    "conditions beside another filter",
    (it) => `${byId(it)}&categoryId=${it.categoryId}`,
    false,
    (etag) => ({ "if-match": '"0"', "if-none-match": etag }),
  ),
  listed("If-Match with its tag", byId, true, (etag) => ({ "if-match": `"0", ${etag}` })),
  listed("If-None-Match with another tag", byId, true, () => ({ "if-none-match": '"0"' })),
  ...["GET", "HEAD"].flatMap((method) =>
    holds.map(([name, headers]) =>
      rule(`${method}: 304 for one who holds ${name}`, {
        ...read(byId, headers, method),
        answers: ({ etag }) => ({ http: { status: 304, headers: { etag } } }),
      }),
    ),
  ),
  rule("HEAD: 412 for another tag", {
    ...read(byId, () => ({ "if-match": '"0"' }), "HEAD"),
    answers: () => ({ http: { status: 412 } }),
  }),
  rule("GET: 412 for another tag", {
    ...read(byId, () => ({ "if-match": '"0"' })),
    fails: { http: "412 ETAG_MISMATCH" },
  }),
  rule("GET: 412 for a weak tag", {
    ...read(byId, (etag) => ({ "if-match": `W/${etag}` })),
    fails: { http: "412 ETAG_MISMATCH", says: "A weak tag" },
  }),
  rule("GET: what is no tag", {
    ...read(byId, () => ({ "if-none-match": "1" })),
    fails: { http: "400 INVALID_HEADER", says: "If-None-Match" },
  }),
];
