/** However large or wrong a request is: few violations are told, and the whole answer is a few KB, in every protocol. */
import { connect } from "node:http2";
import { brotliCompressSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import {
  DeletePetRequestSchema,
  ListPetsRequestSchema,
  PetService,
  UpdatePetRequestSchema,
} from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { DomainError } from "../domain-error.ts";
import { envelope } from "../fixtures/envelope.ts";
import { createDispatcher } from "./dispatcher.ts";
import { type Handlers, implement } from "./handlers.ts";
import { createHealth } from "./health.ts";
import { type RpcServer, startRpcServer } from "./server.ts";

const MAX_ANSWER_BYTES = 8 * 1024;

const log = pino({ level: "silent" });
let server: RpcServer;
let handled: string[] = [];
beforeEach(() => {
  handled = [];
});
beforeAll(async () => {
  const deletePet = () => {
    throw new DomainError("PET_NOT_FOUND", `There is no ${"é".repeat(100_000)}.`);
  };
  const handlers = Object.fromEntries(
    PetService.methods.map(({ localName }) => [localName, () => ({ ignored: handled.push(localName) })]),
  );
  const pets = implement(PetService, { ...handlers, deletePet } as unknown as Handlers<typeof PetService>);
  const deps = { clock: Date.now, random: Math.random, log };
  const dispatcher = createDispatcher([pets], { deps, secret: "", errors });
  server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health: createHealth([]) });
});
afterAll(() => server?.close(0));

type Fields = Readonly<Record<string, string>>;
interface Protocol {
  readonly type: string;
  readonly encoding: string;
}
const protocols: readonly Protocol[] = [
  { type: "application/grpc", encoding: "grpc-encoding" },
  { type: "application/grpc+json", encoding: "grpc-encoding" },
  { type: "application/grpc-web", encoding: "grpc-encoding" },
  { type: "application/grpc-web+json", encoding: "grpc-encoding" },
  { type: "application/proto", encoding: "content-encoding" },
  { type: "application/json", encoding: "content-encoding" },
];
const isFramed = (type: string) => type.startsWith("application/grpc");

/** Sends one message over HTTP/2. The size is that of header fields, body and trailers together. */
async function send(
  method: string,
  { type, encoding }: Protocol,
  request: Uint8Array,
  packed: boolean,
  more: Fields = {},
) {
  const message = packed ? brotliCompressSync(request) : request;
  const session = connect(server.url);
  const stream = session.request({
    ":method": "POST",
    ":path": `/${PetService.typeName}/${method}`,
    "content-type": type,
    ...(packed ? { [encoding]: "br" } : {}),
    "accept-encoding": "identity",
    "grpc-accept-encoding": "identity",
    te: "trailers",
    ...more,
  });
  const fields = new Headers();
  const take = (given: Readonly<Record<string, unknown>>) => {
    for (const [name, value] of Object.entries(given)) if (!name.startsWith(":")) fields.append(name, String(value));
  };
  stream.on("response", take).on("trailers", take);
  stream.end(isFramed(type) ? envelope(message, { flags: packed ? 1 : 0 }) : message);
  const body = Buffer.concat(await stream.toArray());
  session.close();
  const bytes = [...fields].reduce((sum, [name, value]) => sum + name.length + value.length, body.length);
  return { bytes, body, fields };
}

async function ask(...args: Parameters<typeof send>) {
  const { bytes, body, fields } = await send(...args);
  const { type } = args[1];
  const none = new ConnectError("no error", Code.Unknown);
  if (!isFramed(type)) return { bytes, error: errorFromJson(JSON.parse(body.toString()), undefined, none) };
  return { bytes, error: findTrailerError(body.length > 0 ? trailerParse(body.subarray(5)) : fields) ?? none };
}

const encode = <D extends DescMessage>(desc: D, { type }: Protocol, init: MessageInitShape<D>): Uint8Array => {
  const message = create(desc, init);
  return type.endsWith("json") ? Buffer.from(toJsonString(desc, message)) : toBinary(desc, message);
};

describe.each(protocols)("$type", (protocol) => {
  const list = (init: MessageInitShape<typeof ListPetsRequestSchema>) => encode(ListPetsRequestSchema, protocol, init);
  const update = (init: MessageInitShape<typeof UpdatePetRequestSchema>) =>
    encode(UpdatePetRequestSchema, protocol, init);
  const json = protocol.type.endsWith("json");

  describe.each([false, true])("compressed: %s", (packed) => {
    test.each<[string, string, () => Uint8Array, string, string]>([
      [
        "more statuses than a message can hold",
        "ListPets",
        () => list({ status: Array(json ? 100_000 : 1_100_000).fill(0) }),
        "PAYLOAD_TOO_LARGE",
        "larger than 1048576",
      ],
      [
        "as many statuses as a message can hold",
        "ListPets",
        () => list({ status: Array(json ? 40_000 : 1_000_000).fill(0) }),
        "VALIDATION_FAILED",
        "status: must contain no more than 100",
      ],
      [
        "a hundred wrong statuses",
        "ListPets",
        () => list({ status: Array(100).fill(0) }),
        "VALIDATION_FAILED",
        "status[9]: must not be in list [0]; and 90 more",
      ],
      [
        "a long token",
        "ListPets",
        () => list({ pageToken: "x".repeat(1_000_000) }),
        "INVALID_PAGE_TOKEN",
        "page_token: must be at most 2048",
      ],
      [
        "a long name",
        "UpdatePet",
        () => update({ pet: { name: " ".repeat(1_000_000), categoryId: 1n } }),
        "VALIDATION_FAILED",
        "pet.name: must be at most 200",
      ],
      [
        "a long list of entity tags",
        "UpdatePet",
        () => update({ pet: { name: "x", categoryId: 1n }, etag: '"1",'.repeat(150_000) }),
        "VALIDATION_FAILED",
        "etag: must be at most 4096",
      ],
      [
        "a mask of many paths",
        "UpdatePet",
        () => update({ pet: {}, updateMask: { paths: Array(100_000).fill("name") } }),
        "VALIDATION_FAILED",
        "update_mask: must contain no more than 100 paths",
      ],
      [
        "a mask of many wrong paths",
        "UpdatePet",
        () => update({ pet: {}, updateMask: { paths: Array.from({ length: 100 }, (_, i) => `x${i}`) } }),
        "VALIDATION_FAILED",
        "update_mask: must name fields among name, category_id, status",
      ],
      [
        "a service that says too much",
        "DeletePet",
        () => encode(DeletePetRequestSchema, protocol, {}),
        "PET_NOT_FOUND",
        "There is no",
      ],
    ])("%s", async (_, method, request, reason, says) => {
      const { bytes, error } = await ask(method, protocol, request(), packed);
      expect(error.rawMessage).toContain(says);
      expect(reasonOf(error)?.reason).toBe(reason);
      const told = error.findDetails(ViolationsSchema).flatMap(({ violations }) => violations);
      expect(told.length).toBeLessThanOrEqual(10);
      expect(bytes).toBeLessThan(MAX_ANSWER_BYTES);
      expect(handled).toEqual([]);
    });
  });

  test.each(["connect-timeout-ms", "grpc-timeout", "connect-protocol-version", "content-encoding", "grpc-encoding"])(
    "a long %s",
    async (name) => {
      const { bytes } = await send("ListPets", protocol, list({}), false, { [name]: "%".repeat(12_000) });
      expect(bytes).toBeGreaterThan(0);
      expect(bytes).toBeLessThan(MAX_ANSWER_BYTES);
    },
  );

  if (json)
    test.each([
      ["text for a number", `{"limit":"${"x".repeat(50_000)}"}`],
      ["a number that goes on", `{"limit":1${"0".repeat(50_000)}}`],
      ["no JSON", "x".repeat(50_000)],
    ])("%s", async (_, text) => {
      const { bytes, error } = await ask("ListPets", protocol, Buffer.from(text), false);
      expect(error.code).toBe(Code.InvalidArgument);
      expect(bytes).toBeLessThan(MAX_ANSWER_BYTES);
    });
});

test.each(["compression", "encoding"])("a long parameter %s of a Connect GET", async (name) => {
  const parameters = { connect: "v1", encoding: "json", message: "{}", [name]: "x".repeat(12_000) };
  const response = await fetch(`${server.url}/${PetService.typeName}/ListPets?${new URLSearchParams(parameters)}`);
  expect(response.status).toBeGreaterThanOrEqual(400);
  expect((await response.text()).length).toBeLessThan(MAX_ANSWER_BYTES);
});
