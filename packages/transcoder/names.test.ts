/** By which names callers may give a field: as in proto3 JSON both of its own, or its JSON name alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compileProtos, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";

const service = serviceOf(
  compileProtos({
    "store.proto": `syntax = "proto3";
      package store.v1;
      import "google/api/annotations.proto";
      import "google/protobuf/field_mask.proto";
      import "transcoder/v1/annotations.proto";
      message Part { string part_name = 1; }
      message Item {
        string item_id = 1;
        repeated Part spare_parts = 2;
        map<string, Part> parts_by_name = 3;
        oneof way { string by_air = 4; string by_sea = 5; }
        string made_by = 6 [(transcoder.v1.field).output_only = true];
        string first_name = 7 [json_name = "second_name"];
        string second_name = 8 [json_name = "third"];
      }
      message Note { string note_text = 1; optional string page_number = 2 [(transcoder.v1.field).clearable = true]; }
      message ListRequest {
        uint32 page_size = 1 [(transcoder.v1.field).clamped = true];
        string page_token = 2;
        repeated string tag_name = 3;
      }
      message ListResponse { repeated Item items = 1; string next_page_token = 2; }
      message PutRequest { string shelf_name = 1; Item item = 2; }
      message PatchRequest { string shelf_name = 1; Note note = 2; google.protobuf.FieldMask update_mask = 3; }
      service Store {
        rpc List(ListRequest) returns (ListResponse) {
          option (google.api.http) = {get: "/items" response_body: "items"};
        }
        rpc Put(PutRequest) returns (Item) { option (google.api.http) = {put: "/shelves/{shelf_name}" body: "item"}; }
        rpc Patch(PatchRequest) returns (Note) {
          option (google.api.http) = {patch: "/shelves/{shelf_name}" body: "note"};
        }
        rpc Send(PutRequest) returns (Item) { option (google.api.http) = {post: "/items" body: "*"}; }
      }`,
  }),
  "store.v1.Store",
);

let seen: Record<string, unknown> | undefined;
const remember = (request: unknown) => {
  seen = request as Record<string, unknown>;
  return {};
};
const implementation = {
  list: (request: unknown) => ({ ...remember(request), nextPageToken: "t" }),
  put: remember,
  patch: remember,
  send: remember,
};

type Server = Awaited<ReturnType<typeof serve>>;
let both: Server;
let jsonOnly: Server;
beforeAll(async () => {
  const options = { ignoreUnknown: true, openApi: { title: "Store" } };
  both = await serve(service, implementation as never, options);
  jsonOnly = await serve(service, implementation as never, { ...options, jsonNamesOnly: true });
});
afterAll(() => Promise.all([both.app.close(), jsonOnly.app.close()]));
beforeEach(() => {
  seen = undefined;
});

const send = ({ call }: Server, method: string, path: string, body: string, prefer = "handling=lenient") =>
  call(path, { method, body, headers: { "content-type": "application/json", prefer } });
const strictly = (server: Server, method: string, path: string, body: string) =>
  send(server, method, path, body, "handling=strict");

describe("both names of a field mean it", () => {
  test.each([
    ['{"item_id":"q"}', { itemId: "q" }],
    ['{"spare_parts":[{"part_name":"a"},{"partName":"b"}]}', { spareParts: [{ partName: "a" }, { partName: "b" }] }],
    ['{"parts_by_name":{"a_b":{"part_name":"c"}}}', { partsByName: { a_b: { partName: "c" } } }],
    ['{"by_air":"x"}', { way: { case: "byAir", value: "x" } }],
    ['{"made_by":7}', { madeBy: "" }],
  ])("in a body, and in what is nested in it: %s", async (body, item) => {
    expect((await strictly(both, "PUT", "/shelves/a", body)).status).toBe(200);
    expect(seen).toMatchObject({ shelfName: "a", item });
  });

  test("in a body that is all of the request", async () => {
    await strictly(both, "POST", "/items", '{"shelf_name":"a","item":{"item_id":"q"}}');
    expect(seen).toMatchObject({ shelfName: "a", item: { itemId: "q" } });
  });

  test("in a query, and the link to the next page keeps them and tells another token", async () => {
    const { status, headers } = await both.call("/items?page_size=5&page_token=s&tag_name=a&tag_name=b&other_one=1");
    expect(status).toBe(200);
    expect(seen).toMatchObject({ pageSize: 5, pageToken: "s", tagName: ["a", "b"] });
    expect(headers.get("link")).toBe('</items?pageSize=5&tag_name=a&tag_name=b&pageToken=t>; rel="next"');
  });

  test("in a merge patch, whose mask names fields as the contract does", async () => {
    await strictly(both, "PATCH", "/shelves/a", '{"note_text":"x","page_number":null}');
    expect(seen).toMatchObject({ note: { noteText: "x" }, updateMask: { paths: ["note_text", "page_number"] } });
  });

  test("but the name of one that is the JSON name of another", async () => {
    await strictly(both, "PUT", "/shelves/a", '{"second_name":"x","third":"y"}');
    expect(seen).toMatchObject({ item: { firstName: "x", secondName: "y" } });
  });
});

describe("a field is given once", () => {
  test.each([
    ['{"item_id":"q","itemId":"q"}', "item_id: is another name of itemId, which is given too"],
    ['{"itemId":"q","item_id":null}', "item_id: is another name of itemId, which is given too"],
    ['{"made_by":"q","madeBy":"q"}', "made_by: is another name of madeBy, which is given too"],
    [
      '{"spareParts":[{"partName":"a","part_name":"b"}]}',
      "spareParts[0].part_name: is another name of partName, which is given too",
    ],
  ])("in a body: %s", async (body, message) => {
    const { text } = await send(both, "PUT", "/shelves/a", body);
    expect(JSON.parse(text)).toEqual({ code: "MALFORMED_JSON", message, status: 400 });
    expect(seen).toBeUndefined();
  });

  test.each([
    ["page_size=5&pageSize=5", "pageSize: is another name of page_size, which is given too"],
    ["tagName=a&tag_name=b", "tag_name: is another name of tagName, which is given too"],
    ["page_size=5&page_size=5", "page_size: must not be given twice"],
    ["page_size=x", "page_size: must be an integer"],
  ])("in a query: %s", async (query, message) => {
    const { text } = await both.call(`/items?${query}`);
    expect(JSON.parse(text)).toEqual({ code: "INVALID_QUERY", message, status: 400 });
    expect(seen).toBeUndefined();
  });
});

describe("where only JSON names are taken, the others are unknown", () => {
  test.each([
    ["PUT", "/shelves/a", '{"item_id":"q","itemId":"r","made_by":7}', { item: { itemId: "r" } }],
    ["PUT", "/shelves/a", '{"spareParts":[{"part_name":"a"}]}', { item: { spareParts: [{ partName: "" }] } }],
    ["PATCH", "/shelves/a", '{"noteText":"x","page_number":null}', { updateMask: { paths: ["note_text"] } }],
  ])("%s %s %s", async (method, path, body, expected) => {
    expect((await send(jsonOnly, method, path, body)).status).toBe(200);
    expect(seen).toMatchObject(expected);
    const { text } = await strictly(jsonOnly, method, path, body);
    expect(JSON.parse(text)).toMatchObject({ code: "UNKNOWN_FIELD" });
  });

  test("in a query, and the link to the next page leaves them out", async () => {
    const { headers } = await jsonOnly.call("/items?page_size=5&page_token=s&pageSize=6");
    expect(seen).toMatchObject({ pageSize: 6, pageToken: "" });
    expect(headers.get("link")).toBe('</items?pageSize=6&pageToken=t>; rel="next"');
    const { text } = await jsonOnly.call("/items?page_size=5", { headers: { prefer: "handling=strict" } });
    expect(JSON.parse(text)).toMatchObject({ code: "UNKNOWN_FIELD", message: "page_size: is not known here" });
  });
});

test("the document shows JSON names, whichever are taken", async () => {
  const { text } = await both.call("/openapi.json");
  expect(text).toBe((await jsonOnly.call("/openapi.json")).text);
  expect(text).toContain('"pageSize"');
  expect(text).not.toContain('"page_size"');
});
