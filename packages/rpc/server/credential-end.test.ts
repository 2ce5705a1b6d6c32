/** At the port of a service: a stream lasts no longer than the credential that it was opened with. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { CALLER_HEADER, SECRET_HEADER } from "../call.ts";
import { type EndingCredentials, endings, openEndingCredentials } from "../fixtures/ending-credentials.ts";
import { secret, transports } from "../fixtures/ticker.ts";
import { createDispatcher } from "./dispatcher.ts";
import type { Handlers, StreamingCall } from "./handlers.ts";
import { implement } from "./handlers.ts";
import { createHealth } from "./health.ts";
import { startRpcServer } from "./server.ts";

/** A server whose watches say something at once, and again when `goOn` is called. */
async function start({ authentication }: EndingCredentials) {
  const log = pino({ level: "silent" });
  const more = Promise.withResolvers<void>();
  const left: Promise<unknown>[] = [];
  async function* watchPets(_: unknown, { signal }: StreamingCall) {
    left.push(new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })));
    yield { resumeToken: "first" };
    await more.promise;
    yield { resumeToken: "second" };
  }
  const others = Object.fromEntries(PetService.methods.map(({ localName }) => [localName, () => ({})]));
  const handlers = { ...others, watchPets } as unknown as Handlers<typeof PetService>;
  const options = { deps: { ...realTime, log }, secret, errors, authentication };
  const dispatcher = createDispatcher([implement(PetService, handlers)], options);
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health: createHealth([]) });
  onTestFinished(() => server.close(0));
  onTestFinished(() => more.resolve());
  return { url: server.url, left, goOn: more.resolve };
}

const [[, grpc]] = transports as unknown as [(typeof transports)[number]];
type Transport = ReturnType<typeof grpc>;

/** Resolves when a stream has begun. */
async function begin(transport: Transport, headers: Record<string, string>) {
  const stream = createClient(PetService, transport).watchPets({}, { headers })[Symbol.asyncIterator]();
  expect((await stream.next()).value?.resumeToken).toBe("first");
  return stream;
}

/** How a stream ends that says nothing more. */
async function endOf(stream: AsyncIterator<unknown>) {
  const error = await stream.next().catch(ConnectError.from);
  if (!(error instanceof ConnectError)) return expect.fail("it went on");
  const [code, reason] = [Code[error.code], reasonOf(error)?.reason];
  return { code, reason, message: error.rawMessage, challenge: error.metadata.get("www-authenticate") };
}
const UNAUTHENTICATED = { code: "Unauthenticated", challenge: 'Bearer realm="petstore", error="invalid_token"' };
const PERMISSION_DENIED = {
  code: "PermissionDenied",
  challenge: 'Bearer realm="petstore", error="insufficient_scope", scope="pets:read"',
};
const told = { UNAUTHENTICATED, PERMISSION_DENIED };

test.each(endings)("$name ends its stream, and what is done for it", async ({ credential, end, reason, message }) => {
  const credentials = await openEndingCredentials();
  const { url, left } = await start(credentials);
  const stream = await begin(grpc(url), { authorization: `Bearer ${credential(credentials)}` });
  await end(credentials);
  expect(await endOf(stream)).toEqual({ ...told[reason], reason, message });
  await Promise.all(left);
});

describe.each(transports)("over %s", (_, transport) => {
  test("its end is told with its reason", async () => {
    const credentials = await openEndingCredentials();
    const { url } = await start(credentials);
    const stream = await begin(transport(url), { "x-api-key": credentials.key });
    await endings[0]?.end(credentials);
    expect(await endOf(stream)).toMatchObject({ ...UNAUTHENTICATED, reason: "UNAUTHENTICATED" });
  });
});

test("the others go on: of a credential that is still good, and of the system's own processes", async () => {
  const credentials = await openEndingCredentials();
  const { url, goOn } = await start(credentials);
  const transport = grpc(url);
  const [ended, token, peer] = await Promise.all([
    begin(transport, { "x-api-key": credentials.key }),
    begin(transport, { authorization: `Bearer ${credentials.token}` }),
    begin(transport, {
      [SECRET_HEADER]: secret,
      [CALLER_HEADER]: `key:${credentials.id}`,
      "x-api-key": credentials.key,
    }),
  ]);
  await endings[0]?.end(credentials);
  await endOf(ended);
  await credentials.authentication.recheckAll();
  goOn();
  for (const stream of [token, peer]) expect((await stream.next()).value?.resumeToken).toBe("second");
});
