/** Refuses what a service has no room for, before anything but its route is looked at. */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Admission } from "@petstore/rpc/admission/admission";
import { createShedLog } from "@petstore/rpc/admission/shed-log";
import type { Runtime } from "@petstore/runtime/clock";
import { HttpError } from "connect-transcoder";
import type { FastifyInstance } from "fastify";

/** One for all: to make an error is to write down where, which would cost more than the rest. */
export const OVERLOADED = new HttpError(
  "OVERLOADED",
  "There are too many requests under way. Nothing was done. Try again in a second.",
);

declare module "fastify" {
  interface FastifyInstance {
    /** Throws OVERLOADED where there is no room for one more call of the method. */
    shed(request: FastifyRequest, method: DescMethod): void;
  }
  interface FastifyRequest {
    /** It was refused for want of room, which is told together with others. */
    isShed: boolean;
  }
}

export interface SheddingOptions extends Pick<Runtime, "clock" | "log"> {
  readonly services: readonly { readonly desc: DescService; readonly admission?: Admission }[];
}

/** Adds `shed`, for whatever endpoint calls an RPC. */
export function addShedding(app: FastifyInstance, { services, ...deps }: SheddingOptions): void {
  const admissions = new Map(services.map(({ desc, admission }) => [desc.typeName, admission]));
  const logShed = createShedLog(deps);
  app.decorateRequest("isShed", false);
  app.decorate("shed", (request, method) => {
    if (admissions.get(method.parent.typeName)?.hasRoom(method) ?? true) return;
    request.isShed = true;
    logShed(method);
    throw OVERLOADED;
  });
}
