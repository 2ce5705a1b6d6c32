/** Conditional requests over a real port (RFC 9110, 13), and what caches may store. */
import { expect, test } from "vitest";
import { newPet, petGateway, post, seen } from "./fixtures/pets.ts";

const { call, codeOf } = petGateway();

test("If-None-Match: weak comparison, lists, anything; what is no tag is an error", async () => {
  const read = (value: string, method = "GET") => call("/pets/1", { method, headers: { "if-none-match": value } });
  for (const value of ['"3"', 'W/"3"', '"1", "3"', ' ,"x" ,, W/"3",', "*"]) {
    const { status, text, headers } = await read(value);
    expect([value, status, text]).toEqual([value, 304, ""]);
    expect(headers.get("etag")).toBe('"3"');
    expect(headers.get("deprecation")).toBe("@1793491200");
  }
  const [changed, same] = [await read('"4"', "HEAD"), await read('"3"', "HEAD")];
  expect([changed.status, same.status]).toEqual([200, 304]);
  expect(same.headers.get("content-length")).toBe(changed.headers.get("content-length"));
  expect((await call("/pets/77", { headers: { "if-none-match": '"3"' } })).status).toBe(304);
  for (const value of ['"4"', '"3,"', 'W/"33"']) expect((await read(value)).status).toBe(200);
  for (const value of ["3", '"3', '"3" "4"', "*, *", 'w/"3"', ","]) {
    const { status, text } = await read(value);
    expect([status, JSON.parse(text).code]).toEqual([400, "INVALID_HEADER"]);
  }
  expect((await call("/pets/404", { headers: { "if-none-match": "*" } })).status).toBe(404);
});

test("If-Match on a read: strong comparison, before If-None-Match; what is no tag is an error", async () => {
  const read = (headers: Record<string, string>, path = "/pets/1", method = "GET") => call(path, { method, headers });
  for (const value of ['"3"', '"1", "3"', ' ,"x" ,, W/"9", "3",', "*"])
    expect([value, (await read({ "if-match": value })).status]).toEqual([value, 200]);
  for (const value of ['"4"', 'W/"3"', '"3,"', '"1", "2"']) {
    const { status, headers, text } = await read({ "if-match": value, "if-none-match": '"3"' });
    expect([value, status, JSON.parse(text).code]).toEqual([value, 412, "ETAG_MISMATCH"]);
    expect(headers.get("deprecation")).toBe("@1793491200");
  }
  expect((await read({ "if-match": '"4"' }, "/pets/1", "HEAD")).status).toBe(412);
  expect((await read({ "if-match": "*", "if-none-match": '"3"' })).status).toBe(304);
  for (const value of ["3", '"3', '"3" "4"', "*, *", 'w/"3"', ",", ""])
    expect([value, await codeOf("/pets/1", { headers: { "if-match": value } })]).toEqual([value, "INVALID_HEADER"]);
  // The service's own tag is weak: nothing matches it strongly.
  expect(await codeOf("/pets/77", { headers: { "if-match": '"3"' } })).toBe("ETAG_MISMATCH");
  expect(await codeOf("/pets/77", { headers: { "if-match": 'W/"3"' } })).toBe("ETAG_MISMATCH");
  expect(await codeOf("/pets/404", { headers: { "if-match": "*" } })).toBe("PET_NOT_FOUND");
});

test("conditions are judged where one record is meant, and nowhere else", async () => {
  const conditions = { "if-match": "x", "if-none-match": "*" };
  expect((await call("/pets", { headers: conditions })).status).toBe(200);
  expect((await call("/pets", post(newPet, conditions))).status).toBe(201);
});

test("If-None-Match on a write goes to the service like If-Match", async () => {
  const put = (value: string) => call("/pets/1", { ...post(newPet, { "if-none-match": value }), method: "PUT" });
  expect((await put('W/"3", "4"')).status).toBe(200);
  expect(seen.lastUpdate).toMatchObject({ ifNoneMatch: 'W/"3", "4"' });
  expect(seen.lastUpdate?.etag).toBeUndefined();
  expect(await codeOf("/pets/1", { method: "DELETE", headers: { "if-none-match": "3" } })).toBe("INVALID_HEADER");
});

test("what caches may keep: what was read, if they ask before they show it, and nothing else", async () => {
  const cacheable = async (path: string, init?: RequestInit) => {
    const { status, headers } = await call(path, init);
    return [status, headers.get("cache-control"), headers.get("vary")];
  };
  expect(await cacheable("/pets")).toEqual([200, "no-cache", "Accept"]);
  expect(await cacheable("/pets/1")).toEqual([200, "no-cache", "Accept"]);
  expect(await cacheable("/pets/1", { method: "HEAD" })).toEqual([200, "no-cache", "Accept"]);
  const held = { headers: { "if-none-match": '"3"' } };
  expect(await cacheable("/pets/1", held)).toEqual([304, "no-cache", "Accept"]);
  expect(await cacheable("/pets", post(newPet))).toEqual([201, "no-store", "Accept"]);
  expect(await cacheable("/pets/1", { ...post(newPet), method: "PUT" })).toEqual([200, "no-store", "Accept"]);
  expect(await cacheable("/pets/1", { method: "DELETE" })).toEqual([204, "no-store", "Accept"]);
  for (const path of ["/pets/404", "/pets/500", "/pets/x", "/pets?limit=0", "/nowhere", `/pets?x=${"y".repeat(9000)}`])
    expect([path, ...(await cacheable(path)).slice(1)]).toEqual([path, "no-store", "Accept"]);
  expect(await cacheable("/pets", { method: "DELETE" })).toEqual([405, "no-store", "Accept"]);
});

test("If-Match is the service's to judge, but must be entity tags", async () => {
  const put = (value: string) =>
    call("/pets/1", { ...post(newPet, { "if-match": value }), method: "PUT" }).then(({ status }) => status);
  expect(await put('W/"3", "4"')).toBe(200);
  expect(seen.lastUpdate?.etag).toBe('W/"3", "4"');
  expect(await put("*")).toBe(200);
  expect(await put("3")).toBe(400);
  expect(await codeOf("/pets/1", { method: "DELETE", headers: { "if-match": "3" } })).toBe("INVALID_HEADER");
});
