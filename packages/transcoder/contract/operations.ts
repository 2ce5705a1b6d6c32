/** From descriptors of services to the HTTP operations that their annotations ask for, and which can be served together. */
import { create, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../gen/google/api/http_pb.ts";
import { operationOf } from "./binding.ts";
import type { Operation } from "./operation.ts";
import { remembered } from "./remembered.ts";
import { shapeOf } from "./shown-path.ts";

/** An RPC that is asked for and can't be served. */
export interface Refusal {
  readonly method: DescMethod;
  readonly reason: string;
}

/** What can be served of a service, and what not. */
export interface Survey {
  readonly operations: readonly Operation[];
  readonly refused: readonly Refusal[];
}

export interface SurveyOptions {
  /** Serves RPCs that have no HTTP rule, too: each as `POST /package.Service/Method`, with the whole request as its body. */
  readonly unbound?: boolean | undefined;
}

const bound = remembered((service: DescService) => readOperations(service, false));
const all = remembered((service: DescService) => readOperations(service, true));

/**
 * The operations of a service, in the order of its contract. RPCs without an HTTP rule have none.
 *
 * @throws Error when an annotation asks for what can't be served.
 */
export function operationsOf(service: DescService): readonly Operation[] {
  const { operations, refused } = surveyOf(service);
  if (refused[0]) throw new Error(`${refused[0].method}: ${refused[0].reason}`);
  return operations;
}

/** The operations of a service, and which of its RPCs that should have some have none, with the reason. */
export const surveyOf = (service: DescService, { unbound }: SurveyOptions = {}): Survey =>
  unbound ? all(service) : bound(service);

function readOperations(service: DescService, unbound: boolean): Survey {
  const operations: Operation[] = [];
  const refused: Refusal[] = [];
  for (const method of service.methods) {
    const isBound = hasOption(method, http);
    if (!isBound && !unbound) continue;
    try {
      const rules = isBound ? bindingsOf(getOption(method, http)) : [ruleFor(method)];
      const made = rules.map((rule) => operationOf(service, method, rule));
      operations.push(...(isBound ? made : made.map((operation) => ({ ...operation, unbound: true as const }))));
    } catch (error) {
      refused.push({ method, reason: (error as Error).message });
    }
  }
  return { operations: withOwnIds(operations), refused };
}

/** As gRPC itself names the RPC. */
const ruleFor = ({ parent, name }: DescMethod): HttpRule =>
  create(HttpRuleSchema, { pattern: { case: "post", value: `/${parent.typeName}/${name}` }, body: "*" });

function bindingsOf(rule: HttpRule): HttpRule[] {
  if (rule.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0))
    throw new Error("additional bindings can't have bindings of their own");
  return [rule, ...rule.additionalBindings];
}

/** Of bindings with one verb the second has a 2 behind it, and so on. */
function withOwnIds(operations: readonly Operation[]): Operation[] {
  const taken = new Set(operations.map(({ id }) => id));
  return operations.map((operation, i) => {
    if (operations.findIndex(({ id }) => id === operation.id) === i) return operation;
    let count = 2;
    while (taken.has(operation.id + count)) count++;
    taken.add(operation.id + count);
    return { ...operation, id: operation.id + count };
  });
}

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

/**
 * Leaves out what can't be served: RPCs whose annotations ask for what there is not, and services that have a conflict. The
 * others are in the order in which they were given; `refusals` are a sentence for each that is left out.
 */
export function selectServed<S extends { readonly desc: DescService }>(
  services: readonly S[],
  options?: SurveyOptions,
) {
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
