/**
 * Who calls, and whether they may: the one seam, which both endpoints ask for every RPC, and which nothing else knows. The
 * services ask callers from outside the same way at their own ports (`packages/rpc/server/authorization.ts`), where the
 * gateway is believed to speak for its callers.
 */
import type { IncomingMessage } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { Authentication } from "@petstore/rpc/auth/authentication";
import { credentialsOf } from "@petstore/rpc/auth/credentials";
import { ANONYMOUS, type Principal } from "@petstore/rpc/call";
import { HttpError } from "connect-transcoder";
import type { FastifyInstance } from "fastify";
import { reasonOf } from "#errors";
import type { FailedCredentials } from "./rates/failed-credentials.ts";

export interface Auth {
  /**
   * Says who calls, by credentials in the headers, if they may call the method, and those of `also`. What it throws is the
   * answer: an HttpError with UNAUTHENTICATED or PERMISSION_DENIED. `known` is called in between, and may throw one, too.
   */
  readonly admit: (
    request: IncomingMessage,
    method: DescMethod,
    known: (caller: Principal) => void,
    also: readonly DescMethod[],
  ) => Promise<Principal> | Principal;
  /**
   * Checks again and again what lasts and was admitted. `end` is called with what `admit` would throw, when it would.
   * Gives what stops the checks. Without it everybody is admitted for good.
   */
  readonly recheck?: (
    request: IncomingMessage,
    method: DescMethod,
    also: readonly DescMethod[],
    end: (refusal: unknown) => void,
  ) => () => void;
}

/** Nobody is asked: every caller is the same, and may call whatever the gateway serves. */
const none: Auth = {
  admit(_request, _method, known) {
    known(ANONYMOUS);
    return ANONYMOUS;
  },
};

/** With `failed`, those who show credentials that are not valid are counted. */
export const authOf = (authentication: Authentication | undefined, failed?: FailedCredentials): Auth =>
  authentication
    ? {
        admit: admitted(authentication, failed),
        // Not counted with `failed`: who was admitted does not guess.
        recheck: (request, method, also, end) =>
          authentication.recheck(credentialsOf(request), method, (refused) => end(inHttp(refused)), also),
      }
    : none;

const admitted =
  (authentication: Authentication, failed: FailedCredentials | undefined): Auth["admit"] =>
  async (request, method, known, also) => {
    const credentials = credentialsOf(request);
    const isShown = credentials.authorization !== undefined || credentials.apiKey !== undefined;
    if (isShown) failed?.refuse(request);
    try {
      return await authentication.admit(credentials, method, known, also);
    } catch (thrown) {
      if (isShown && reasonOf(thrown)?.reason === "UNAUTHENTICATED") failed?.count(request);
      throw inHttp(thrown);
    }
  };

/** The same refusal as an error of HTTP. */
function inHttp(thrown: unknown): unknown {
  const reason = reasonOf(thrown)?.reason;
  if (!(thrown instanceof ConnectError) || reason === undefined) return thrown;
  const challenge = thrown.metadata.get("www-authenticate");
  return new HttpError(reason, thrown.rawMessage, challenge === null ? {} : { "www-authenticate": challenge });
}

declare module "fastify" {
  interface FastifyInstance {
    /** Lets a request call RPCs, in its caller's name, or throws an HttpError. It counts as one request. */
    admit(request: FastifyRequest, ...methods: readonly [DescMethod, ...DescMethod[]]): Promise<void> | void;
  }
  interface FastifyRequest {
    /** The id of the principal, once the request is admitted. */
    caller: string;
  }
}

/** Adds `admit`, for whatever endpoint calls an RPC. It begins with what costs least: whether there is room for one more. */
export function addAuth(app: FastifyInstance, { admit, recheck }: Auth): void {
  app.decorateRequest("caller", "");
  app.decorate("admit", (request, method, ...also) => {
    const set = (principal: Principal) => {
      request.caller = principal.id;
      app.countStream(request, method, principal, (end) => recheck?.(request.raw, method, also, end));
    };
    app.shed(request, method);
    const admitted = admit(request.raw, method, (caller) => app.countRequest(request, caller), also);
    return admitted instanceof Promise ? admitted.then(set) : set(admitted);
  });
}
