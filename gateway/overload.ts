/** Refuses what a service has no room for, before anything but its route is looked at. */
import type { ServerResponse } from "node:http";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Admission } from "@petstore/rpc/admission/admission";
import { createShedLog } from "@petstore/rpc/admission/shed-log";
import type { Runtime } from "@petstore/runtime/clock";
import { HttpError } from "connect-transcoder";
import type { FastifyInstance } from "fastify";
import type { CallerAddress } from "./rates/caller-address.ts";

/** One for all: to make an error is to write down where, which would cost more than the rest. */
export const OVERLOADED = new HttpError(
  "OVERLOADED",
  "There are too many requests under way. Nothing was done. Try again in a second.",
);

declare module "fastify" {
  interface FastifyInstance {
    /** Throws OVERLOADED where there is no room for one more call of the method, by this caller. */
    shed(request: FastifyRequest, method: DescMethod): void;
  }
  interface FastifyRequest {
    /** It was refused for want of room, which is told together with others. */
    isShed: boolean;
    /** Where its answer goes. */
    answer?: ServerResponse;
  }
}

export interface SheddingOptions extends Pick<Runtime, "clock" | "log"> {
  readonly services: readonly { readonly desc: DescService; readonly admission?: Admission }[];
  /** Whose request it is, before it is asked who calls. */
  readonly addressOf: CallerAddress;
}

/** Adds `shed`, for whatever endpoint calls an RPC. */
export function addShedding(app: FastifyInstance, { services, addressOf, ...deps }: SheddingOptions): void {
  const admissions = new Map(services.map(({ desc, admission }) => [desc.typeName, admission]));
  const logShed = createShedLog(deps);
  app.decorateRequest("isShed", false);
  app.decorateRequest("answer");
  app.addHook("onRequest", (request, { raw }, done) => {
    request.answer = raw;
    done();
  });
  app.decorate("shed", (request, method) => {
    const admission = admissions.get(method.parent.typeName);
    if (!admission) return;
    const caller = addressOf(request.raw);
    if (admission.hasRoom(method, caller)) return void request.answer?.once("close", admission.hold(caller));
    request.isShed = true;
    logShed(method);
    throw OVERLOADED;
  });
}
