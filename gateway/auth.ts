/**
 * Who calls, and what they may: the one seam, which both endpoints ask for every RPC, and which nothing else knows. The
 * services judge at their own ports (`packages/rpc/server/authorization.ts`), where the gateway is believed to speak for
 * its callers.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { ANONYMOUS, type Principal } from "@petstore/rpc/call";
import type { FastifyInstance } from "fastify";
import type { GatewayConfig } from "./config.ts";

/** What a mode of authentication consists of. What these throw is the answer: an HttpError. */
export interface Auth {
  /** Says who calls, by credentials in the headers. Refuses with UNAUTHENTICATED. */
  readonly authenticate: (headers: IncomingHttpHeaders) => Promise<Principal> | Principal;
  /** Refuses with PERMISSION_DENIED what the principal may not call. */
  readonly authorize: (principal: Principal, method: DescMethod) => Promise<void> | void;
}

/** Nobody is asked: every caller is the same, and may call whatever the gateway serves. */
const none: Auth = { authenticate: () => ANONYMOUS, authorize: () => {} };

const modes = { none } as const satisfies Record<GatewayConfig["authMode"], Auth>;

export const authOf = ({ authMode }: Pick<GatewayConfig, "authMode">): Auth => modes[authMode];

declare module "fastify" {
  interface FastifyInstance {
    /** Lets a request call an RPC, in its caller's name, or throws an HttpError. */
    admit(request: FastifyRequest, method: DescMethod): Promise<void> | void;
  }
  interface FastifyRequest {
    /** The id of the principal, once the request is admitted. */
    caller: string;
  }
}

/** Adds `admit`, for whatever endpoint calls an RPC. */
export function addAuth(app: FastifyInstance, { authenticate, authorize }: Auth): void {
  app.decorateRequest("caller", "");
  app.decorate("admit", (request, method) => {
    const principal = authenticate(request.headers);
    return principal instanceof Promise ? principal.then(admit) : admit(principal);

    function admit(principal: Principal): Promise<void> | void {
      app.countRequest(request, principal);
      const set = () => {
        request.caller = principal.id;
      };
      const permission = authorize(principal, method);
      return permission ? permission.then(set) : set();
    }
  });
}
