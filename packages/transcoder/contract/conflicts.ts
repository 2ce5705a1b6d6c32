/** Operations that no request can tell apart, and which services can be served beside each other. */
import type { DescService } from "@bufbuild/protobuf";
import type { Operation } from "./operation.ts";
import { type SurveyOptions, surveyOf } from "./operations.ts";
import { shapeOf } from "./shown-path.ts";

/** Two or more operations with one verb whose paths differ at most in what their variables are called. */
export interface Conflict {
  readonly operations: readonly Operation[];
  /** Names them all, with their paths as the contracts write them. */
  readonly reason: string;
}

/** Finds all conflicts among the operations, be they of one service or of several. */
export function conflictsOf(operations: readonly Operation[]): Conflict[] {
  const byShape = new Map<string, Operation[]>();
  for (const operation of operations) {
    const shape = `${operation.verb} ${shapeOf(operation.template)}`;
    const alike = byShape.get(shape);
    if (alike) alike.push(operation);
    else byShape.set(shape, [operation]);
  }
  return [...byShape.values()]
    .filter(({ length }) => length > 1)
    .map((alike) => ({ operations: alike, reason: told(alike) }));
}

function told(operations: readonly Operation[]): string {
  const all = operations.map(
    ({ service, method, verb, route }) => `${service.typeName}.${method.name} (${verb} ${route})`,
  );
  return `no request can tell ${all.slice(0, -1).join(", ")} and ${all.at(-1)} apart: give each a path or a verb of its own`;
}

/** What is served of some services. */
export interface Selection<S> {
  /** The services in the order in which they were given, without those that have a conflict. */
  readonly served: readonly (S & { readonly operations: readonly Operation[] })[];
  /** Why services and RPCs are left out, a sentence for each. */
  readonly refusals: readonly string[];
}

/** Leaves out what can't be served: RPCs whose annotations ask for what there is not, and services that have a conflict. */
export function selectServed<S extends { readonly desc: DescService }>(
  services: readonly S[],
  options?: SurveyOptions,
): Selection<S> {
  const surveyed = services.map((service) => ({ service, survey: surveyOf(service.desc, options) }));
  const conflicts = conflictsOf(surveyed.flatMap(({ survey }) => survey.operations));
  const inConflict = new Set(conflicts.flatMap(({ operations }) => operations.map(({ service }) => service)));
  return {
    served: surveyed
      .filter(({ service }) => !inConflict.has(service.desc))
      .map(({ service, survey }) => ({ ...service, operations: survey.operations })),
    refusals: [
      ...surveyed.flatMap(({ survey }) => survey.refused.map(({ method, reason }) => `${method}: ${reason}`)),
      ...conflicts.map(
        ({ operations, reason }) =>
          `${[...new Set(operations.map(({ service }) => service.typeName))].join(", ")} can't be served: ${reason}`,
      ),
    ],
  };
}
