import { type JsonObject, jsonText } from "connect-transcoder";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { docsPage } from "./docs/page.ts";
import { docs } from "./docs.ts";
import { startGateway, testLimits } from "./fixtures/gateway.ts";
import { petstoreDocument } from "./openapi.ts";

const config = {
  publicUrl: "https://shop.example",
  basePath: "/api",
  limits: { ...testLimits, rpcBytes: 1024 * 1024 },
  deprecation: {},
  rate: undefined,
  auth: undefined,
};
const described: JsonObject = { ...petstoreDocument(config), "x-largest": 9223372036854775807n };
let made = 0;
const document = async () => {
  if (++made === 1) throw new Error("not this time");
  return described;
};
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins: [docs("/api", document)] });
});
afterAll(() => gateway.app.close());

test("the document is made when it is asked for, once, and sent as it is, with all digits", async () => {
  expect(made).toBe(0);
  expect((await gateway.call("/api/openapi.json")).status).toBe(500);
  for (let times = 0; times < 2; times++) {
    const answer = await gateway.call("/api/openapi.json");
    expect([answer.status, answer.text]).toEqual([200, jsonText(described)]);
    expect(answer.text).toContain('"x-largest":9223372036854775807');
    expect(answer.headers.get("content-type")).toMatch(/^application\/json(;|$)/);
    expect((await gateway.call("/api/docs")).status).toBe(200);
  }
  expect(made).toBe(2);
});

test("the browser is told to load nothing, and to run nothing", async () => {
  const { headers, text } = await gateway.call("/api/docs");
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("content-security-policy")?.split("; ")).toEqual([
    "default-src 'none'",
    expect.stringMatching(/^style-src 'sha256-[\w+/]{43}='$/),
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
  expect(text).not.toMatch(/<script|\bsrc=|\bon\w+=|\bstyle=/);
});

describe("the page", () => {
  const page = docsPage(described);
  const operations = Object.values(described.paths as Record<string, Record<string, { operationId: string }>>)
    .flatMap((verbs) => Object.values(verbs))
    .map(({ operationId }) => operationId);
  const ids = [...page.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id);

  test("shows every operation, and before the prose", () => {
    expect(operations.length).toBeGreaterThan(15);
    expect(ids).toEqual(expect.arrayContaining(operations));
    const last = Math.max(...operations.map((id) => page.indexOf(`id="${id}"`)));
    expect(page.indexOf("After 503 or 504 the outcome of a write is unknown")).toBeGreaterThan(last);
  });

  test("its links lead somewhere, behind any prefix", () => {
    expect(new Set(ids).size).toBe(ids.length);
    const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, link = ""]) => link);
    const within = links.filter((link) => link.startsWith("#"));
    expect(within.filter((link) => !ids.includes(link.slice(1)))).toEqual([]);
    expect(new Set(links).difference(new Set(within))).toEqual(new Set(["data:,", "openapi.json"]));
  });

  test("what looks like HTML in a text is text", () => {
    const looksLikeHtml = '<b>&amp;</b> <img src=x onerror=alert(1)> <!-- "x" --> psk_<id>_<secret>';
    const { info, tags, paths } = described as Record<string, JsonObject>;
    const shown = docsPage({
      ...described,
      info: { ...info, title: looksLikeHtml, description: `${looksLikeHtml}\n\n${looksLikeHtml}` },
      tags,
      paths,
    } as JsonObject);
    expect(shown).not.toMatch(/<(img|b>|id>|!--)/);
    expect(shown.match(/psk_&(lt|#60);id&(gt|#62);_&(lt|#60);secret&(gt|#62);/g)).toHaveLength(4);
  });

  test("a caller who is asked for a credential sees where it goes", () => {
    expect(page).not.toContain("Authorization");
    const auth = { apiKeysFile: "keys.json", tokens: undefined } as never;
    const asking = docsPage(petstoreDocument({ ...config, auth }));
    expect(asking).toContain("curl -i https://shop.example/api/pets/1 -H &#34;Authorization: Bearer $CREDENTIAL&#34;");
    expect(asking).toContain("X-API-Key");
  });
});
