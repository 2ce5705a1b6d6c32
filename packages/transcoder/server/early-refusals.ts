/** Refuses requests before Fastify sees them, which costs the least. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { selectServed } from "../contract/conflicts.ts";
import type { Operation } from "../contract/operation.ts";
import { errorForms } from "../errors/forms.ts";
import type { HttpError } from "../errors/http-error.ts";
import { deprecationHeaders } from "../policy/deprecation.ts";
import { wantsProblem } from "../policy/media.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../request/request-id.ts";
import { commonHeaders } from "./common-headers.ts";
import { operationOf } from "./dispatch.ts";
import { NOT_STORED } from "./error-answers.ts";
import { filesOf, serverDefaults, type TranscoderOptions, transcoderDefaults } from "./options.ts";
import { createRouter } from "./router.ts";

export interface EarlyRefusals extends TranscoderOptions {
  /** The error that they are refused with. */
  readonly error: HttpError;
  /** Whether to refuse a request. Asked for each that is for an operation, before its body is read. */
  readonly refuses: (request: IncomingMessage, operation: Operation) => boolean;
  /** More headers for the answer. By default none. */
  readonly moreHeaders?: ((request: IncomingMessage) => Record<string, string>) | undefined;
}

/**
 * Looks at the requests of a server before Fastify does. The answer is the one that `authorize` would bring about by
 * throwing the error; but `Host` and sizes are not judged, no hook is called, and nothing is logged. A HEAD, a
 * target with scheme and host, and what asks for no operation goes on to `next`. For the `serverFactory` of Fastify.
 */
export function refuseEarly(options: EarlyRefusals, next: RequestListener): RequestListener {
  const { error, refuses, moreHeaders, services } = options;
  const { apiVersion, errors, random } = serverDefaults(options);
  const { basePath, deprecation, codec } = transcoderDefaults(options);
  const operations = selectServed(services, options).served.flatMap((service) => service.operations);
  const router = createRouter(operations, basePath);
  const endings = new Map(operations.map((one) => [one, deprecationHeaders(one, deprecation, basePath, codec)]));
  const { failureOf, form } = errorForms(errors, () => filesOf(options));
  const answers = [false, true].map((asProblem) => {
    const { status, headers, type, body } = form(failureOf(error, ""), asProblem);
    const about = { "content-type": `${type}; charset=utf-8`, "content-length": `${Buffer.byteLength(body)}` };
    return { status, body, headers: { ...NOT_STORED, ...headers, ...about } };
  });

  function refuse(request: IncomingMessage, response: ServerResponse, operation: Operation): void {
    const { [REQUEST_ID_HEADER]: given, traceparent } = request.headers;
    const id = requestIdOf(given, traceparent, random);
    const { vary, ...more } = moreHeaders?.(request) ?? {};
    const answer = answers[wantsProblem(request) ? 1 : 0] as (typeof answers)[number];
    response.writeHead(answer.status, {
      ...commonHeaders(id, apiVersion),
      ...endings.get(operation)?.(request.url ?? ""),
      ...more,
      vary: vary === undefined ? "Accept" : `${vary}, Accept`,
      ...answer.headers,
    });
    response.end(answer.body);
  }

  return (request, response) => {
    const operation = request.method === "HEAD" ? undefined : operationOf(request, router);
    if (operation && refuses(request, operation)) refuse(request, response, operation);
    else next(request, response);
  };
}
