/** An enum that says that it is unspecified can be absent as a member, and not within a list or a map. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";

const service = serviceOf(
  compileProtos({
    "paint.proto": `syntax = "proto3";
      package paint.v1;
      import "buf/validate/validate.proto";
      import "google/api/annotations.proto";
      enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; }
      enum Gloss { option allow_alias = true; GLOSS_UNSPECIFIED = 0; GLOSS_ANY = 0; GLOSS_MATT = 1; }
      message Wall {
        Colour colour = 1;
        repeated Colour stripes = 2;
        map<string, Colour> frames = 3 [
          (buf.validate.field).map.keys.string.max_len = 5,
          (buf.validate.field).map.values.enum.defined_only = true
        ];
        repeated Gloss coats = 4;
        repeated Colour dots = 5 [(buf.validate.field).repeated.items.enum.not_in = 0];
      }
      message WallRequest { Wall wall = 1; repeated Colour only = 2; }
      message Fence { Colour colour = 1; Gloss gloss = 2; Colour sure = 3 [(buf.validate.field).required = true]; }
      message WallResponse { repeated Colour stripes = 1; }
      service Paint {
        rpc PutWall(WallRequest) returns (Wall) { option (google.api.http) = {put: "/wall" body: "wall"}; }
        rpc GetFence(Wall) returns (Fence) { option (google.api.http) = {post: "/fence" body: "*"}; }
        rpc GetStripes(Wall) returns (WallResponse) {
          option (google.api.http) = {post: "/stripes" body: "*" response_body: "stripes"};
        }
      }`,
  }),
  "paint.v1.Paint",
);

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const implementation = {
    putWall: ({ wall }: { wall: object }) => wall,
    getFence: () => ({}),
    getStripes: ({ stripes }: { stripes: number[] }) => ({ stripes }),
  };
  server = await serve(service, implementation as never, { openApi: { title: "Paint" } });
});
afterAll(() => server.app.close());

const send = (method: string, path: string, body: string) =>
  server.call(path, { method, body, headers: { "content-type": "application/json" } });

test("it has a name there, by which it is shown and read", async () => {
  const wall = '{"stripes":["unspecified","red"],"frames":{"door":"unspecified"},"coats":["any","matt"],"dots":[]}';
  expect((await send("PUT", "/wall", wall)).text).toBe(wall);
  expect((await send("POST", "/stripes", wall)).text).toBe('["unspecified","red"]');
});

test.each([
  ["/wall", '{"colour":"unspecified"}', "colour: must be one of red"],
  ["/wall", '{"coats":["unspecified"]}', "coats[0]: must be one of any, matt"],
  ["/wall", '{"dots":["unspecified"]}', "dots[0]: must not be in list [0]"],
  ["/wall?only=unspecified", "{}", "only: must be one of red"],
])("and nowhere else: %s %s", async (path, body, message) => {
  expect((await send("PUT", path, body)).record()).toMatchObject({ message });
});

test("the document says so", async () => {
  const { components, paths } = (await server.call("/openapi.json")).record() as {
    components: { schemas: Record<string, { properties: object }> };
    paths: Record<string, { put: { parameters: { schema: object }[] } }>;
  };
  const colour = { $ref: "#/components/schemas/Colour" };
  const colours = { anyOf: [colour, { enum: ["unspecified"] }] };
  expect(components.schemas.Wall?.properties).toEqual({
    colour,
    stripes: { type: "array", items: colours },
    frames: { type: "object", propertyNames: { maxLength: 5 }, additionalProperties: colours },
    coats: { type: "array", items: { $ref: "#/components/schemas/Gloss" } },
    dots: { type: "array", items: colour },
  });
  expect(paths["/wall"]?.put.parameters[0]?.schema).toEqual({ type: "array", items: colour });
});

test("and requires of answers no member that may be absent", async () => {
  const { components } = (await server.call("/openapi.json")).record() as {
    components: { schemas: Record<string, { required: string[] }> };
  };
  expect((await send("POST", "/fence", "{}")).text).toBe('{"gloss":"any"}');
  expect(components.schemas.Fence?.required).toEqual(["gloss", "sure"]);
});

test("where answers have numbers callers may send them, too", async () => {
  const implementation = { getStripes: ({ stripes }: { stripes: number[] }) => ({ stripes }) };
  const numbers = await serve(service, implementation as never, { enumNumbers: true });
  const answer = await numbers.call("/stripes", {
    method: "POST",
    body: '{"stripes":[1,"red"]}',
    headers: { "content-type": "application/json" },
  });
  expect(answer.text).toBe("[1,1]");
  await numbers.app.close();
});
