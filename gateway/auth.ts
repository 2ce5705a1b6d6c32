/**
 * Authentication and authorization of callers. Both endpoints use `admit` for every RPC; nothing else in the gateway
 * authenticates. The services authenticate outside callers in the same way at their own ports
 * (`packages/rpc/server/dispatcher.ts`), where they trust the gateway to name its callers.
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
import type { countStreams, createRates, createShedding } from "./limits.ts";
import type { FailedCredentials } from "./rates.ts";

export interface Auth {
  /**
   * Identifies the caller by the credentials in the headers, and checks that it may call `method` and those of `also`.
   * Throws the HttpError to answer with: UNAUTHENTICATED or PERMISSION_DENIED. `known` is called between the two steps, and
   * may throw an HttpError, too.
   */
  readonly admit: (
    request: IncomingMessage,
    method: DescMethod,
    known: (caller: Principal) => void,
    also: readonly DescMethod[],
  ) => Promise<Principal> | Principal;
  /**
   * Checks a long-lived request repeatedly after its admission. Calls `end` with the error that `admit` would throw, as
   * soon as it would. Returns a function that stops the checks. Without `recheck` an admitted request stays admitted.
   */
  readonly recheck?: (
    request: IncomingMessage,
    method: DescMethod,
    also: readonly DescMethod[],
    end: (refusal: unknown) => void,
  ) => () => void;
}

/** No authentication: every caller is ANONYMOUS and may call everything that the gateway serves. */
const none: Auth = {
  admit(_request, _method, known) {
    known(ANONYMOUS);
    return ANONYMOUS;
  },
};

/** `failed` limits the requests of an address that carry invalid credentials. */
export const authOf = (authentication: Authentication | undefined, failed?: FailedCredentials): Auth =>
  authentication
    ? {
        admit: admitted(authentication, failed),
        // Not counted with `failed`: a caller that was admitted is not guessing credentials.
        recheck: (request, method, also, end) =>
          authentication.recheck(credentialsOf(request), method, (refused) => end(inHttp(refused)), also),
      }
    : none;

const admitted =
  (authentication: Authentication, failed: FailedCredentials | undefined): Auth["admit"] =>
  async (request, method, known, also) => {
    const credentials = credentialsOf(request);
    const isShown = credentials.authorization !== undefined || credentials.apiKey !== undefined;
    const identified = (caller: Principal) => {
      failed?.succeed(credentials);
      known(caller);
    };
    if (isShown) failed?.begin(request, credentials);
    try {
      return await authentication.admit(credentials, method, identified, also);
    } catch (thrown) {
      if (isShown && reasonOf(thrown)?.reason === "UNAUTHENTICATED") failed?.fail(request, credentials);
      throw inHttp(thrown);
    }
  };

/** Converts an RPC error with a reason into the equivalent HttpError. */
function inHttp(thrown: unknown): unknown {
  const reason = reasonOf(thrown)?.reason;
  if (!(thrown instanceof ConnectError) || reason === undefined) return thrown;
  const challenge = thrown.metadata.get("www-authenticate");
  return new HttpError(reason, thrown.rawMessage, challenge === null ? {} : { "www-authenticate": challenge });
}

declare module "fastify" {
  interface FastifyInstance {
    /** Authorizes a request to call RPCs in its caller's name, or throws an HttpError. It counts as one request. */
    admit(request: FastifyRequest, ...methods: readonly [DescMethod, ...DescMethod[]]): Promise<void> | void;
  }
  interface FastifyRequest {
    /** The id of the principal, once the request is admitted. */
    caller: string;
  }
}

/** What a call passes besides authentication. Each throws an HttpError for a call that it refuses. */
interface CallChecks
  extends Pick<ReturnType<typeof createShedding>, "letIn">,
    Pick<ReturnType<typeof createRates>, "count"> {
  readonly countStream: ReturnType<typeof countStreams>;
}

/**
 * Adds `admit`, for every endpoint that calls RPCs. In this order: is there room, who calls, at what rate, may it call that,
 * and are there too many streams?
 */
export function addAdmission(
  app: FastifyInstance,
  { admit, recheck }: Auth,
  { letIn, count, countStream }: CallChecks,
): void {
  app.decorateRequest("caller", "");
  app.decorateRequest("ended", undefined);
  app.decorate("admit", (request, method, ...also) => {
    const set = (principal: Principal) => {
      request.caller = principal.id;
      countStream(request, method, principal, (end) => recheck?.(request.raw, method, also, end));
    };
    letIn(request, method);
    const admitted = admit(request.raw, method, (caller) => count(request, caller), also);
    return admitted instanceof Promise ? admitted.then(set) : set(admitted);
  });
}
