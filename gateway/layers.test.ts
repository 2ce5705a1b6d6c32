/** The order of the gateway's layers: a request that is wrong for two of them is refused by the earlier one. */
import { createAdmission } from "@petstore/rpc/admission/admission";
import { HttpError } from "connect-transcoder";
import { afterEach, expect, test } from "vitest";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { GatewayOptions } from "./app.ts";
import type { Auth } from "./auth.ts";
import { cors } from "./cors.ts";
import { sendRaw, servedInProcess, startGateway } from "./fixtures/gateway.ts";
import type { RateLimits } from "./rates.ts";

const pets = servedInProcess(PetService, { getPet: () => ({ pet: { id: 1n, name: "Rex", etag: '"1"' } }) });

const fullAdmission = createAdmission({ clock: () => 0 });
while (!fullAdmission.isFull(PetService.method.updatePet)) fullAdmission.begin(PetService.method.updatePet);
const full = { services: [{ desc: PetService, transport: pets, admission: fullAdmission }] };

const auth: Auth = {
  admit({ headers: { authorization: id } }, _method, known) {
    if (!id) throw new HttpError("UNAUTHENTICATED", "Who are you?");
    known({ id });
    if (id === "mallory") throw new HttpError("PERMISSION_DENIED", "You may not.");
    return { id };
  },
};

const rate = { requests: 1, windowMs: 1000, burst: 1 };
const used = () => ({ allowed: false, rate, remaining: 0, resetMs: 1000, retryMs: 1000, used: { at: 0, count: 1 } });
const exceeded = { rates: { count: used, peek: used } as unknown as RateLimits };

const RPC = "/petstore.pet.v1.PetService/Nope";

/** One thing that is wrong with a request, or with what a gateway has left for it, and what it is answered. */
interface Fault {
  readonly answer: RegExp;
  readonly options?: Partial<GatewayOptions>;
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  /** Of the fields that another request would have, an empty one is left out. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** In the order of the layers. */
const faults: Readonly<Record<string, Fault>> = {
  "no room for the operation": { answer: /^503.*OVERLOADED/, options: full },
  "a foreign host": { answer: /^421.*x-request-id: .*MISDIRECTED_REQUEST/, fields: { host: "evil.example" } },
  "a preflight": {
    answer: /^204/,
    method: "OPTIONS",
    fields: { origin: "https://shop.example", "access-control-request-method": "GET" },
  },
  "no memory": { answer: /^503.*OVERLOADED/, options: { connections: { requestBytes: 1 } } },
  "too many requests without an operation": { answer: /^429.*RATE_LIMITED/, options: exceeded, path: "/nowhere" },
  "an RPC that there is not": {
    answer: /^200.*grpc-status: 12/,
    method: "POST",
    path: RPC,
    fields: { "content-type": "application/grpc" },
  },
  "a path that there is not": { answer: /^404.*ROUTE_NOT_FOUND/, path: RPC },
  "a long target": { answer: /^414.*URI_TOO_LONG/, query: `?${"x".repeat(9000)}` },
  "a host that is none": { answer: /^400/, fields: { host: "a b" } },
  "no room for the call": { answer: /^503/, options: full, method: "HEAD" },
  "no credentials": { answer: /^401/, fields: { authorization: "" } },
  "too many requests of a caller": { answer: /^429.*RATE_LIMITED/, options: exceeded },
  "no permission": { answer: /^403.*PERMISSION_DENIED/, fields: { authorization: "mallory" } },
  "too many streams": {
    answer: /^429.*TOO_MANY_STREAMS/,
    options: { streams: { streams: 0, streamsPerCaller: 0 } },
    path: "/events",
  },
  "an answer of another type": { answer: /^406.*NOT_ACCEPTABLE/, fields: { accept: "image/png" } },
};
const sunset: Fault = {
  answer: /^410.*ENDPOINT_SUNSET/,
  options: { deprecation: { deprecatedAt: 0, sunsetAt: 1, goneAfterSunset: true } },
};

let gateway: Awaited<ReturnType<typeof startGateway>> | undefined;
afterEach(async () => {
  await gateway?.app.close();
  gateway = undefined;
});

/** The answer of a new gateway to a request with both faults, in one line. */
async function answerTo(one: Partial<Fault>, other: Fault): Promise<string> {
  const { method, path, query } = { ...one, ...other };
  await gateway?.app.close();
  gateway = await startGateway(
    PetService,
    {},
    {
      services: [
        { desc: PetService, transport: pets },
        { desc: EventService, transport: servedInProcess(EventService, {}) },
      ],
      auth,
      cors: cors(["https://shop.example"]),
      hosts: { check: ({ headers }) => (headers.host === "evil.example" ? "is not served here" : undefined) },
      ...one.options,
      ...other.options,
    },
  );
  const lines = Object.entries({ host: "x", authorization: "ann", connection: "close", ...one.fields, ...other.fields })
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method ?? "GET"} ${path ?? "/pets/1"}${query ?? ""} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return (await sendRaw(gateway.port, head, { end: false })).replace("HTTP/1.1 ", "").replaceAll("\r\n", " ");
}

const inOrder = Object.entries(faults);
const neighbours = inOrder.slice(1).map(([name, later], i) => {
  const [before, earlier] = inOrder[i] as (typeof inOrder)[number];
  return [before, name, earlier, later] as const;
});
const { "no permission": forbidden, "an answer of another type": unacceptable } = faults;
test.each([
  ...neighbours,
  ["no permission", "a sunset", forbidden as Fault, sunset] as const,
  ["a sunset", "an answer of another type", sunset, unacceptable as Fault] as const,
])("%s is seen before %s", async (_before, _name, earlier, later) => {
  expect(await answerTo({}, later)).toMatch(later.answer);
  expect(await answerTo(earlier, later)).toMatch(earlier.answer);
});
