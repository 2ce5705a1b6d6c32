/** What can be served of a contract, for `--check`, the start and the log. */
import type { DescService } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";
import { type SurveyOptions, selectServed } from "../contract/operations.ts";

export interface Report {
  readonly operations: readonly Operation[];
  /** A sentence for each RPC, or each conflict. */
  readonly refusals: readonly string[];
}

export function reportOn(services: readonly DescService[], options: SurveyOptions): Report {
  const { served, refusals } = selectServed(
    services.map((desc) => ({ desc })),
    options,
  );
  return { operations: served.flatMap(({ operations }) => operations), refusals };
}

export const countOf = (operations: readonly Operation[]): string =>
  `${operations.length} operations of ${new Set(operations.map(({ service }) => service)).size} services`;

const rpcOf = ({ service, method }: Operation) => `${service.typeName}/${method.name}`;

export function asText({ operations, refusals }: Report): string {
  const lines = [
    `Served: ${countOf(operations)}`,
    ...operations.map((operation) => `  ${operation.verb} ${operation.route}  ${rpcOf(operation)}`),
  ];
  if (refusals.length > 0) lines.push(`Not served: ${refusals.length}`, ...refusals.map((each) => `  ${each}`));
  return `${lines.join("\n")}\n`;
}

export const asJson = ({ operations, refusals }: Report): string =>
  `${JSON.stringify(
    {
      served: operations.map((operation) => ({ verb: operation.verb, path: operation.route, rpc: rpcOf(operation) })),
      refused: refusals,
    },
    null,
    2,
  )}\n`;

/** Why it is not served at all: nothing can be, or with `isStrict` anything can't; undefined where it is. */
export function obstacle(
  services: readonly DescService[],
  { operations, refusals }: Report,
  isStrict: boolean,
): string | undefined {
  const isServed = operations.length > 0;
  if (isServed && !(isStrict && refusals.length > 0)) return undefined;
  if (refusals.length > 0)
    return [`${isServed ? "Not all" : "Nothing"} can be served:`, ...refusals.map((each) => `  ${each}`)].join("\n");
  const names = services.map(({ typeName }) => typeName).join(", ");
  return names === ""
    ? "Nothing can be served: the contract has no services."
    : `Nothing can be served: no RPC of ${names} has a google.api.http rule. With --unbound each is POST /package.Service/Method. If their .proto files do have rules, the server's reflection leaves them out, as Node's @grpc/reflection does: give --descriptor-set FILE.`;
}
