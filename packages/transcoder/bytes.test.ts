/** Identifiers and tokens that are bytes: an address has them in base64url, and finds what it was made for. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";

const service = serviceOf(
  compileProtos({
    "keys.proto": `syntax = "proto3";
      package keys.v1;
      import "google/api/annotations.proto";
      import "transcoder/v1/annotations.proto";
      message Key { bytes id = 1; }
      message Nothing {}
      message ListRequest { bytes page_token = 1; repeated bytes id = 2; }
      message ListResponse { repeated Key keys = 1; bytes next_page_token = 2; }
      service Keys {
        rpc GetKey(Key) returns (Key) { option (google.api.http) = {get: "/keys/{id}"}; }
        rpc AddKey(Nothing) returns (Key) {
          option (google.api.http) = {post: "/keys"};
          option (transcoder.v1.operation) = {success_status: 201 location: "/keys/{id}"};
        }
        rpc ListKeys(ListRequest) returns (ListResponse) {
          option (google.api.http) = {get: "/keys" response_body: "keys"};
        }
      }`,
  }),
  "keys.v1.Keys",
);
const ID = Uint8Array.of(0xfb, 0xff, 0xfe, 0);
interface Listing {
  pageToken: Uint8Array;
  id: Uint8Array[];
}
let asked: Listing;

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const implementation = {
    getKey: ({ id }: { id: Uint8Array }) => ({ id }),
    addKey: () => ({ id: ID }),
    listKeys(request: Listing) {
      asked = request;
      return { keys: [], nextPageToken: request.pageToken.length > 0 ? new Uint8Array() : ID };
    },
  };
  server = await serve(service, implementation as never, { openApi: { title: "Keys" } });
});
afterAll(() => server.app.close());

test("Location has them so, and leads to the record", async () => {
  const { headers, record } = await server.call("/keys", { method: "POST" });
  expect(headers.get("location")).toBe("/keys/-__-AA");
  expect((await server.call("/keys/-__-AA")).record()).toEqual(record());
});

test("the Link to the next page has a token so, and none when it is empty", async () => {
  const { headers } = await server.call("/keys");
  expect(headers.get("link")).toBe('</keys?pageToken=-__-AA>; rel="next"');
  const { headers: last } = await server.call("/keys?pageToken=-__-AA");
  expect(last.get("link")).toBeNull();
  expect(asked.pageToken).toEqual(ID);
});

test.each(["-__-AA", "-__-AA==", "-__-AA%3D%3D", "%2B%2F%2F%2BAA%3D%3D"])("%s in an address is read", async (id) => {
  expect((await server.call(`/keys/${id}`)).record()).toEqual({ id: "+//+AA==" });
  expect((await server.call(`/keys?id=${id}&id=AA`)).status).toBe(200);
  expect(asked.id).toEqual([ID, Uint8Array.of(0)]);
});

test.each(["-__-A", "-__-AB", "a*"])("%s in an address is refused", async (id) => {
  expect((await server.call(`/keys/${id}`)).record()).toMatchObject({ message: "id: must be in base64url" });
});

test("the document tells bodies and addresses apart", async () => {
  const { paths, components } = (await server.call("/openapi.json")).record() as {
    paths: Record<string, { get: { parameters: { name: string; schema: object }[] } }>;
    components: { schemas: Record<string, { properties: object }> };
  };
  const [id] = paths["/keys/{id}"]?.get.parameters ?? [];
  expect(id?.schema).toEqual({ type: "string", contentEncoding: "base64url" });
  expect(components.schemas.Key?.properties).toEqual({ id: { type: "string", contentEncoding: "base64" } });
});
