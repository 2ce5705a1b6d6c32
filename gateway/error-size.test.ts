/** No error answer of the HTTP endpoint grows with what was sent: names are cut, few violations are told. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway } from "./fixtures/gateway.ts";

const MAX_ANSWER_BYTES = 2 * 1024;

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  gateway = await startGateway(PetService, {});
});
afterAll(() => gateway.app.close());

const LONG = "x".repeat(60_000);
const HALF = "x".repeat(30_000);
const URL_LONG = "x".repeat(8000);
const strict = { prefer: "handling=strict" };
const post = (body: string) => ({
  method: "POST",
  headers: { ...strict, "content-type": "application/json" },
  body,
});

test.each<[string, string, RequestInit, string]>([
  ["an unknown member", "/pets", post(`{"${LONG}":1}`), "UNKNOWN_FIELD"],
  ["a member given twice", "/pets", post(`{"${HALF}":1,"${HALF}":1}`), "MALFORMED_JSON"],
  ["a long name", "/pets", post(`{"name":"${LONG}","categoryId":1}`), "VALIDATION_FAILED"],
  ["a long status", "/pets", post(`{"status":"${LONG}"}`), "VALIDATION_FAILED"],
  ["an unknown parameter", `/pets?${URL_LONG}=1`, { headers: strict }, "UNKNOWN_FIELD"],
  ["an unknown status", `/pets?status=${URL_LONG}`, {}, "INVALID_QUERY"],
  ["too many identifiers", `/pets?id=${"1,".repeat(3900)}1`, {}, "INVALID_QUERY"],
  ["a long page token", `/pets?pageToken=${URL_LONG}`, {}, "INVALID_PAGE_TOKEN"],
  ["a long identifier", `/pets/${URL_LONG}`, {}, "INVALID_ID"],
  ["an unknown path", `/${URL_LONG}`, {}, "ROUTE_NOT_FOUND"],
  ["a long If-Match", "/pets/1", { method: "DELETE", headers: { "if-match": '"1",'.repeat(2000) } }, "INVALID_HEADER"],
  ["a long Accept", "/pets", { headers: { accept: URL_LONG } }, "NOT_ACCEPTABLE"],
  ["a long X-Server-Timeout", "/pets", { headers: { "x-server-timeout": URL_LONG } }, "INVALID_HEADER"],
])("%s", async (_, path, init, code) => {
  const { text, headers } = await gateway.call(path, init);
  expect(JSON.parse(text).code).toBe(code);
  const fields = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  expect(fields + text.length).toBeLessThan(MAX_ANSWER_BYTES);
});

test("of a name that is quoted the beginning is left, and the sentence is whole", async () => {
  const { text } = await gateway.call("/pets", post(`{"${LONG}":1}`));
  expect(JSON.parse(text).message).toBe(`${"x".repeat(61)}...: is not known here`);
});
