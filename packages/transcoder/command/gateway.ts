/** The port, and behind it the contract of the moment. */
import type { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { defaultLimits } from "@petstore/rpc/http/limits";
import { listen } from "@petstore/rpc/http/listen";
import { closePort, createOnePortServer } from "@petstore/rpc/http/one-port";
import { behindAnswers } from "@petstore/rpc/http/refusals";
import type { ServerTls } from "@petstore/rpc/tls/certificates";
import type { Settings } from "./flags.ts";
import type { Generation } from "./generation.ts";
import type { Telemetry } from "./telemetry.ts";

/** How long requests may go on when the command ends, beyond the time that they have anyway, in milliseconds. */
const MORE_MS = 1000;

export interface Gateway {
  readonly port: number;
  /** New requests go to this one from now on. */
  readonly serve: (generation: Generation) => void;
  /** Answers what has begun, and then closes. */
  readonly close: () => Promise<void>;
}

export async function openGateway(
  settings: Settings,
  { observed }: Pick<Telemetry, "observed">,
  first: Generation,
): Promise<Gateway> {
  let current = first;
  /** The current one, and those before that still have requests. */
  const all = new Set([first]);
  const requestMs = settings.library.limits?.requestMs ?? defaultLimits.requestMs;
  const server = createOnePortServer(
    observed((request, response) => current.handle(request, response)),
    {
      ...defaultLimits,
      requestMs,
      bodyBytes: settings.bodyBytes,
      requestBytes: Math.max(defaultLimits.requestBytes, 4 * settings.bodyBytes),
    },
    { tls: settings.tls && tlsOf(settings.tls) },
  );
  server.on("clientError", (error, socket) =>
    behindAnswers(socket as Socket, () => current.refuse(error, socket as Socket)),
  );
  const port = await listen(server, settings, adviceOn);
  return {
    port,
    serve(generation) {
      const before = current;
      current = generation;
      all.add(generation);
      void before.retire().then(() => all.delete(before));
    },
    close: () =>
      closePort(server, requestMs + MORE_MS, () => {
        for (const each of all) each.endStreams();
      }),
  };
}

const adviceOn = (code: string): string | undefined =>
  ({
    EADDRINUSE: "something else listens there already. Choose another with --port.",
    EACCES: "that is not allowed to you. Choose a --port above 1023.",
    EADDRNOTAVAIL: "this machine does not have that address. Choose another with --host.",
    ENOTFOUND: "there is no such host. Choose another with --host.",
  })[code];

function tlsOf({ cert, key }: NonNullable<Settings["tls"]>): ServerTls {
  const options = { cert, key, minVersion: "TLSv1.2" } as const;
  const certificates = { options, context: createSecureContext(options) };
  return {
    certificates: {
      current: () => certificates,
      onChange: () => {},
      reload: async () => {},
      [Symbol.asyncDispose]: async () => {},
    },
  };
}
