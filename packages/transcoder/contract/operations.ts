/** From the descriptors of a service to the HTTP operations that its annotations ask for. */
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { operationOf } from "./binding.ts";
import type { Operation } from "./operation.ts";
import { withOwnIds } from "./operation-ids.ts";

/** An RPC that has an HTTP rule and can't be served by it. */
export interface Refusal {
  readonly method: DescMethod;
  readonly reason: string;
}

/** What can be served of a service, and what not. */
export interface Survey {
  readonly operations: readonly Operation[];
  readonly refused: readonly Refusal[];
}

const known = new WeakMap<DescService, Survey>();

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

/** The operations of a service, and which of its RPCs with a rule have none, with the reason. */
export function surveyOf(service: DescService): Survey {
  const survey = known.get(service) ?? readOperations(service);
  known.set(service, survey);
  return survey;
}

function readOperations(service: DescService): Survey {
  const operations: Operation[] = [];
  const refused: Refusal[] = [];
  for (const method of service.methods.filter((one) => hasOption(one, http))) {
    try {
      operations.push(...bindingsOf(getOption(method, http)).map((rule) => operationOf(service, method, rule)));
    } catch (error) {
      refused.push({ method, reason: (error as Error).message });
    }
  }
  return { operations: withOwnIds(operations), refused };
}

function bindingsOf(rule: HttpRule): HttpRule[] {
  if (rule.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0))
    throw new Error("additional bindings can't have bindings of their own");
  return [rule, ...rule.additionalBindings];
}
