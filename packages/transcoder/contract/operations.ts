/** From the descriptors of a service to the HTTP operations that its annotations ask for. */
import { create, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../gen/google/api/http_pb.ts";
import { operationOf } from "./binding.ts";
import type { Operation } from "./operation.ts";
import { withOwnIds } from "./operation-ids.ts";

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

const known = { bound: new WeakMap<DescService, Survey>(), all: new WeakMap<DescService, Survey>() };

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
export function surveyOf(service: DescService, { unbound = false }: SurveyOptions = {}): Survey {
  const surveys = unbound ? known.all : known.bound;
  const survey = surveys.get(service) ?? readOperations(service, unbound);
  surveys.set(service, survey);
  return survey;
}

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
