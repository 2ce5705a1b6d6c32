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
   * Says who calls, by credentials in the headers, if they may call the method. What it throws is the answer: an HttpError
   * with UNAUTHENTICATED or PERMISSION_DENIED. `known` is called in between, and may throw one, too.
   */
  readonly admit: (
    request: IncomingMessage,
    method: DescMethod,
    known: (caller: Principal) => void,
  ) => Promise<Principal> | Principal;
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
  authentication ? { admit: admitted(authentication, failed) } : none;

const admitted =
  (authentication: Authentication, failed: FailedCredentials | undefined): Auth["admit"] =>
  async (request, method, known) => {
    const credentials = credentialsOf(request);
    const isShown = credentials.authorization !== undefined || credentials.apiKey !== undefined;
    if (isShown) failed?.refuse(request);
    try {
      return await authentication.admit(credentials, method, known);
    } catch (thrown) {
      if (isShown && reasonIn(thrown) === "UNAUTHENTICATED") failed?.count(request);
      return refuse(thrown);
    }
  };

const reasonIn = (thrown: unknown): string | undefined =>
  thrown instanceof ConnectError ? reasonOf(thrown)?.reason : undefined;

/** The same refusal as an error of HTTP. */
function refuse(thrown: unknown): never {
  const reason = reasonIn(thrown);
  if (!(thrown instanceof ConnectError) || reason === undefined) throw thrown;
  const challenge = thrown.metadata.get("www-authenticate");
  throw new HttpError(reason, thrown.rawMessage, challenge === null ? {} : { "www-authenticate": challenge });
}

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

/** Adds `admit`, for whatever endpoint calls an RPC. It begins with what costs least: whether there is room for one more. */
export function addAuth(app: FastifyInstance, { admit }: Auth): void {
  app.decorateRequest("caller", "");
  app.decorate("admit", (request, method) => {
    const set = ({ id }: Principal) => {
      request.caller = id;
    };
    app.shed(request, method);
    const admitted = admit(request.raw, method, (caller) => app.countRequest(request, caller));
    return admitted instanceof Promise ? admitted.then(set) : set(admitted);
  });
}
