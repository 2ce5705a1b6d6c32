/** What no linter says of the contract: that it agrees with itself. */
import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { FieldMaskSchema, MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { http } from "connect-transcoder/gen/google/api/annotations_pb.js";
import { error, operation, scope } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { describe, expect, test } from "vitest";
import { docs } from "#proto/docs.ts";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { max_page_size } from "#proto/petstore/common/v1/lists_pb.ts";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { watchedServices } from "../../gateway/events/watched-services.ts";
import { httpServices } from "../../gateway/services.ts";
import { MAX_PATHS } from "../../packages/transcoder/validation/mask.ts";
import { limitOf } from "../../packages/transcoder/validation/validate.ts";
import { contractServices } from "./contract-services.ts";

const services = contractServices.filter(({ typeName }) => !typeName.startsWith("petstore.internal."));
const methods = services.flatMap((service): DescMethod[] => service.methods);
/** What the gateway makes of the Watch RPCs of others, and asks for their scopes. */
const isMerged = ({ parent }: DescMethod) => parent.typeName === EventService.typeName;

test("the gateway serves every service that is not internal", () => {
  const served = httpServices.map(({ typeName }) => typeName);
  expect(served.toSorted()).toEqual(services.map(({ typeName }) => typeName));
  expect(services.length).toBeGreaterThanOrEqual(4);
});

describe.each(methods.map((method) => [method.name, method] as const))("%s", (name, method) => {
  const rule = getOption(method, http);
  const { errors, deprecation, acceptsEmptyMask } = getOption(method, operation);

  test("names only reasons of the catalogue", () => {
    const known = ErrorReasonSchema.values.map(({ localName }) => localName);
    for (const reason of errors) expect(known).toContain(reason);
  });

  test("has a path of its own, unless it is a batch or a watch", () => {
    expect(rule.pattern.case !== undefined).toBe(isMerged(method) || !/^(BatchGet|Watch)/.test(name));
  });

  test("says that it only reads if and only if it does", () => {
    const reads = /^(BatchGet|Watch)/.test(name) || rule.pattern.case === "get";
    expect(method.idempotency === Level.NO_SIDE_EFFECTS).toBe(reads);
  });

  test("asks for the scope of its resource that fits what it does", () => {
    const resource = method.parent.typeName.split(".")[1] as string;
    const scopes: Record<string, string> = { pet: "pets", category: "categories", order: "orders" };
    const action = method.idempotency === Level.NO_SIDE_EFFECTS ? "read" : "write";
    expect(getOption(method, scope)).toBe(isMerged(method) ? "" : `${scopes[resource] ?? resource}:${action}`);
  });

  test("changes nothing with an empty mask, if it takes one", () => {
    const takesMask = method.input.fields.some(({ message }) => message?.typeName === FieldMaskSchema.typeName);
    expect(acceptsEmptyMask).toBe(takesMask);
  });

  test("is not gone before it is deprecated", () => {
    if (deprecation) expect(Date.parse(deprecation.sunsetAt)).toBeGreaterThan(Date.parse(deprecation.deprecatedAt));
    expect(deprecation !== undefined).toBe(name === "GetPet");
  });
});

test("events are put together from every RPC that watches, each by the scope that it asks for itself", () => {
  const watching = methods.filter((method) => /^Watch/.test(method.name) && !isMerged(method));
  expect(watchedServices.map(({ method }) => `${method}`).toSorted()).toEqual(
    watching.map((method) => `${method}`).toSorted(),
  );
  for (const { method } of watchedServices) expect(getOption(method, scope)).toMatch(/:read$/);
  expect(methods.filter(isMerged).map(({ name }) => name)).toEqual(["WatchEvents"]);
});

test("internal RPCs ask for no scope: they can't be called from outside", () => {
  const internal = contractServices.filter((service) => !services.includes(service));
  expect(internal.length).toBeGreaterThanOrEqual(4);
  for (const method of internal.flatMap((service): DescMethod[] => service.methods))
    expect(getOption(method, scope), method.toString()).toBe("");
});

describe("a comment that tells a limit tells the one that is in force", () => {
  const inputs = methods.flatMap(({ input }) => [input, ...input.fields.flatMap(({ message }) => message ?? [])]);
  const fields = [...new Set(inputs)].flatMap(({ fields }) => fields);
  const commentOf = ({ parent, name }: DescField) => docs[`${parent.typeName}.${name}`] ?? "";

  test.each(fields.filter((field) => limitOf(field).size < Number.POSITIVE_INFINITY))("%s", (field) => {
    const told = /At most ([\d,]+)/.exec(commentOf(field))?.[1]?.replaceAll(",", "");
    if (told !== undefined) expect(Number(told)).toBe(limitOf(field).size);
  });

  test.each(fields.filter(({ message }) => message?.typeName === FieldMaskSchema.typeName))("%s", (field) => {
    expect(commentOf(field)).toContain(`At most ${MAX_PATHS}.`);
  });

  test.each(fields.filter(({ name }) => name === "limit"))("%s", (field) => {
    const size = getOption(field, max_page_size);
    expect(size).toBeGreaterThan(0);
    expect(commentOf(field)).toContain(`1 to ${size}. Absent means ${size}; more is read as ${size}.`);
  });
});

test("every reason has an HTTP status", () => {
  for (const value of ErrorReasonSchema.values.slice(1))
    expect(getOption(value, error).httpStatus, value.name).toBeGreaterThanOrEqual(400);
});
