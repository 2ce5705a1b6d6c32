import { expect, test } from "vitest";
import { Refusal, refusalOf } from "./refusal.ts";

test("an Error record of the petstore is a refusal, with how long to wait and what is not for the caller", async () => {
  const body = JSON.stringify({ code: "PERMISSION_DENIED", message: "not these" });
  const headers = { "retry-after": "3", "www-authenticate": 'Bearer error="insufficient_scope", scope="orders:read"' };
  const refusal = await refusalOf(new Response(body, { status: 403, headers }));
  expect(refusal).toBeInstanceOf(Refusal);
  expect(refusal).toMatchObject({
    code: "PERMISSION_DENIED",
    message: "not these",
    retryAfterMs: 3_000,
    denied: "order",
  });
});

test.each(["<h1>502 Bad Gateway</h1>", "", "null", '{"message":"no upstream"}'])(
  "what a proxy answers that reaches no petstore has no code: %s",
  async (body) => {
    const answer = (headers = {}) => refusalOf(new Response(body, { status: 502, headers }));
    expect(await answer()).toMatchObject({ code: "", message: "no petstore answers: 502" });
    expect(await answer({ "retry-after": "120" })).toMatchObject({ retryAfterMs: 120_000 });
  },
);

test.each(["Infinity", "99999999999"])("nobody waits for as long as %s seconds", async (retryAfter) => {
  const answer = new Response("", { status: 503, headers: { "retry-after": retryAfter } });
  expect(await refusalOf(answer)).toMatchObject({ retryAfterMs: 600_000 });
});
