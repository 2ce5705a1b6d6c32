/** A service that is newer than the server sends enum values that the server does not know. */
import { createRouterTransport } from "@connectrpc/connect";
import { type FastifyInstance, fastify } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, enumOf, serviceOf } from "./fixtures/compile.ts";
import { serverOptions, transcoder } from "./index.ts";
import { logUnknownValues } from "./response/scalars.ts";

const registry = compileProtos({
  "paint.proto": `syntax = "proto3";
    package paint.v1;
    import "google/api/annotations.proto";
    import "transcoder/v1/annotations.proto";
    enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; }
    message Door { Colour colour = 1; }
    message Wall {
      Colour colour = 1;
      optional Colour inside = 2;
      repeated Colour stripes = 3;
      map<string, Colour> frames = 4;
      repeated Door doors = 5;
      oneof roof { Colour flat = 6; string thatch = 7; }
    }
    message Nothing {}
    message PutRequest { Wall wall = 1; }
    message Walls { repeated Wall walls = 1; }
    message Event { Wall wall = 1; }
    service Paint {
      rpc GetWall(Nothing) returns (Wall) {
        option idempotency_level = NO_SIDE_EFFECTS;
        option (google.api.http) = {get: "/wall"};
      }
      rpc GetColour(Nothing) returns (Wall) { option (google.api.http) = {get: "/colour" response_body: "colour"}; }
      rpc GetStripes(Nothing) returns (Wall) { option (google.api.http) = {get: "/stripes" response_body: "stripes"}; }
      rpc GetDoors(Nothing) returns (Wall) { option (google.api.http) = {get: "/doors" response_body: "doors"}; }
      rpc AddWall(PutRequest) returns (Wall) {
        option (google.api.http) = {post: "/walls" body: "wall"};
        option (transcoder.v1.operation).success_status = 201;
      }
      rpc Watch(Nothing) returns (stream Event) { option (google.api.http) = {get: "/events"}; }
    }`,
});
const service = serviceOf(registry, "paint.v1.Paint");

const wall = {
  colour: 7,
  inside: -1,
  stripes: [1, 8, 0],
  frames: { left: 7, right: 1 },
  doors: [{ colour: 9 }, { colour: 1 }],
  roof: { case: "flat", value: 7 },
};
const text =
  '{"colour":7,"inside":-1,"stripes":["red",8,"unspecified"],"frames":{"left":7,"right":"red"},' +
  '"doors":[{"colour":9},{"colour":"red"}],"flat":7}';

const get = () => wall;
const implementation = {
  getWall: get,
  getColour: get,
  getStripes: get,
  getDoors: get,
  addWall: get,
  async *watch() {
    yield { wall };
  },
};

const log: string[] = [];
let app: FastifyInstance;
beforeAll(async () => {
  const transport = createRouterTransport((router) => router.service(service, implementation as never));
  const options = { services: [{ desc: service, transport }], codec: "exact" as const };
  app = fastify({ ...serverOptions(options), logger: { level: "warn", stream: { write: (line) => log.push(line) } } });
  await app.register(transcoder, options);
});
afterAll(() => app.close());

const ask = (method: "GET" | "POST", url: string) =>
  app.inject({ method, url, headers: { host: "localhost" }, ...(method === "POST" && { payload: {} }) });

test.each([
  ["GET", "/wall", 200, text],
  ["GET", "/colour", 200, "7"],
  ["GET", "/stripes", 200, '["red",8,"unspecified"]'],
  ["GET", "/doors", 200, '[{"colour":9},{"colour":"red"}]'],
  ["POST", "/walls", 201, text],
] as const)("they are written as their numbers: %s %s", async (method, url, status, body) => {
  const answer = await ask(method, url);
  expect([answer.statusCode, answer.body]).toEqual([status, body]);
});

test("in streams too, and the stream goes on to its end", async () => {
  const { body } = await ask("GET", "/events");
  expect(body).toBe(`{"wall":${text}}\n`);
});

test("each is logged once", async () => {
  await ask("GET", "/wall");
  const lines = log.map((line) => JSON.parse(line)).filter((line) => "enum" in line);
  const about = lines.map((line) => `${line.enum} ${line.value}`);
  expect(about.toSorted()).toEqual([-1, 7, 8, 9].map((value) => `paint.v1.Colour ${value}`));
  expect(lines[0]).toMatchObject({ level: 40, msg: "an enum value of a newer service is answered as its number" });
});

test("of a service that sends any number, no more than a hundred are logged", () => {
  const told: object[] = [];
  const tell = logUnknownValues({ warn: (about) => told.push(about) });
  for (let value = 2; value < 1000; value++) tell(enumOf(registry, "paint.v1.Colour"), value);
  expect(told).toHaveLength(100);
});
