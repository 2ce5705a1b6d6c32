/** Load shedding: refuses calls that a service has no room for. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { type Admission, createShedLog } from "@petstore/rpc/admission/admission";
import { isRefused, TOO_MANY_UNDER_WAY } from "@petstore/rpc/http/memory";
import type { Runtime } from "@petstore/runtime/clock";
import {
  type EarlyRefusals,
  HttpError,
  isGone,
  type Operation,
  refuseEarly,
  type TranscoderOptions,
} from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { RatesOptions } from "./rates/counting.ts";

/** One instance for all refusals: creating an error captures a stack trace, which would cost more than the rest. */
export const OVERLOADED = new HttpError("OVERLOADED", TOO_MANY_UNDER_WAY);

declare module "fastify" {
  interface FastifyRequest {
    /** Whether it was refused for lack of room. Such requests are logged together, not one by one. */
    isShed: boolean;
    /** The raw response to it. */
    response?: ServerResponse;
  }
}

export interface SheddingOptions extends TranscoderOptions, RatesOptions, Pick<Runtime, "clock" | "log"> {
  readonly clock: Runtime["clock"];
  readonly services: readonly (TranscoderOptions["services"][number] & { readonly admission?: Admission })[];
  readonly moreHeaders: EarlyRefusals["moreHeaders"];
  /** Told of requests that are refused before Fastify sees them. */
  readonly onEarly: (request: IncomingMessage, operation: Operation) => void;
}

export function createShedding(options: SheddingOptions) {
  const { services, addressOf, onEarly } = options;
  const admissions = new Map(services.map(({ desc, admission }) => [desc.typeName, admission]));
  const logShed = createShedLog(options);
  const admissionOf = ({ parent }: DescMethod) => admissions.get(parent.typeName);
  /** Refuses most requests for HTTP operations without room, by verb and path alone. */
  const early = (next: RequestListener) =>
    refuseEarly(
      {
        ...options,
        error: OVERLOADED,
        refuses(request, operation) {
          const { method } = operation;
          const hasRoom = !isRefused(request) && admissionOf(method)?.hasRoom(method, addressOf(request)) !== false;
          if (hasRoom) return false;
          logShed(method);
          onEarly(request, operation);
          return true;
        },
      },
      next,
    );

  /** Counts a request to call the method until its answer is over. Throws OVERLOADED if there is no room for it. */
  function letIn(request: FastifyRequest, method: DescMethod): void {
    const { response } = request;
    // A response that is gone already would never emit `close`, and so would count forever.
    const counted = response && !isGone(response) ? response : undefined;
    if (admissionOf(method)?.letIn(method, addressOf(request.raw), counted) !== false) return;
    request.isShed = true;
    logShed(method);
    throw OVERLOADED;
  }
  return { early, letIn };
}

/** Keeps the response of each request, which counts until that is over. */
export function keepResponses(app: FastifyInstance): void {
  app.decorateRequest("isShed", false);
  app.decorateRequest("response");
  app.addHook("onRequest", (request, { raw }, done) => {
    request.response = raw;
    done();
  });
}

/** Refuses requests for whose work the port has no memory. */
export function refuseWithoutMemory(app: FastifyInstance): void {
  app.addHook("onRequest", ({ raw }, _reply, done) => done(isRefused(raw) ? OVERLOADED : undefined));
}
