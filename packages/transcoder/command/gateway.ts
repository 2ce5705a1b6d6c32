/** The port, and behind it the contract of the moment. */
import type { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { defaultLimits } from "@petstore/rpc/http/limits";
import { listen } from "@petstore/rpc/http/listen";
import { closePort, createOnePortServer } from "@petstore/rpc/http/one-port";
import { behindAnswers } from "@petstore/rpc/http/refusals";
import type { ServerTls } from "@petstore/rpc/tls/certificates";
import { adviceOn, type Settings } from "./flags.ts";
import type { Generation } from "./generation.ts";
import type { Telemetry } from "./telemetry.ts";

/** How long requests may go on when the command ends, beyond the time that they have anyway, in milliseconds. */
const MORE_MS = 1000;

export async function openGateway(settings: Settings, { observed }: Pick<Telemetry, "observed">, first: Generation) {
  let current = first;
  /** The current one, and those before that still have requests. */
  const all = new Set([first]);
  const { bodyBytes, requestMs } = settings.library.limits;
  const server = createOnePortServer(
    observed((request, response) => current.handle(request, response)),
    { ...defaultLimits, requestMs, bodyBytes, requestBytes: Math.max(defaultLimits.requestBytes, 4 * bodyBytes) },
    { tls: settings.tls && tlsOf(settings.tls) },
  );
  server.on("clientError", (error, socket) =>
    behindAnswers(socket as Socket, () => current.refuse(error, socket as Socket)),
  );
  const port = await listen(server, settings, adviceOn(""));
  return {
    port,
    /** New requests go to this one from now on. */
    serve(generation: Generation): void {
      const before = current;
      current = generation;
      all.add(generation);
      void before.retire().then(() => all.delete(before));
    },
    /** Answers what has begun, and then closes. */
    close: (): Promise<void> =>
      closePort(server, requestMs + MORE_MS, () => {
        for (const each of all) each.endStreams();
      }),
  };
}

function tlsOf({ cert, key }: NonNullable<Settings["tls"]>): ServerTls {
  const options = { cert, key, minVersion: "TLSv1.2" } as const;
  const certificates = { options, context: createSecureContext(options) };
  const nothing = async () => {};
  return {
    certificates: {
      current: () => certificates,
      onChange: () => {},
      reload: nothing,
      [Symbol.asyncDispose]: nothing,
    },
  };
}
