/** The OpenAPI 3.1 document, made from the same operations as the routes: what is on the wire, and nothing else. */
import { createCodec } from "../contract/codec.ts";
import { commentsOf } from "../contract/comments.ts";
import type { Operation } from "../contract/operation.ts";
import { errorBodies, errorsOf, failureExamples, failuresOf } from "./errors.ts";
import { type Json, type JsonObject, line, prose } from "./json.ts";
import { describe } from "./operations.ts";
import { commonParameters, parametersOf } from "./parameters.ts";
import { pathsOf, withOnePathEach, withUniqueIds } from "./paths.ts";
import { ALWAYS, commonHeaders, failureResponses, ownHeaders } from "./responses.ts";
import { createSchemas } from "./schemas.ts";
import type { About, Sources, Told } from "./sources.ts";

const NOTHING = { errors: [], headers: {} };

/** @throws Error when an operation names an error that the catalogue does not have. */
export function openApiDocument(given: Sources, about: About): JsonObject {
  const { docs: texts = commentsOf(given.files) } = given;
  const sources = {
    ...given,
    operations: withOnePathEach(withUniqueIds(given.operations)),
    docs: Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, prose(text)])),
  };
  const { operations, docs } = sources;
  const errors = errorsOf(sources);
  const bodies = errorBodies(errors);
  const schemas = createSchemas(sources, createCodec(about), Object.keys(bodies.schemas));
  const { title, version, description, license, contact, url = "", basePath, everywhere = NOTHING } = about;
  const common = {
    errorBodies: bodies,
    asksCallers: sources.security !== undefined,
    headers: [...ALWAYS, ...Object.keys(everywhere.headers)],
  };
  const headers = { ...commonHeaders(version, common.asksCallers), ...everywhere.headers };
  const parameters = commonParameters(about);
  const described = operations.map((operation) => ({
    operation,
    failures: failuresOf(operation, sources, errors, everywhere.errors),
    parameters: parametersOf(operation, schemas, parameters, about),
  }));
  const paths = pathsOf(
    described.map((one) => ({ operation: one.operation, text: describe(one, sources, schemas, common) })),
  );
  return {
    openapi: "3.1.1",
    info: {
      title: line(title),
      version,
      description: description && prose(description),
      contact: contact === undefined ? undefined : { name: contact },
      license: license === undefined ? undefined : { name: license, identifier: license },
    },
    servers: [{ url: url + basePath || "/" }],
    tags: tagsOf(operations, docs),
    paths,
    components: referredOnly(
      {
        schemas: { ...schemas.components(), ...bodies.schemas },
        responses: failureResponses(described, common),
        parameters,
        examples: failureExamples(
          described.flatMap(({ failures }) => failures),
          bodies,
        ),
        headers: { ...headers, ...ownHeaders(operations, schemas, headers) },
        securitySchemes: sources.security,
      },
      paths,
    ),
  };
}

function tagsOf(operations: readonly Operation[], docs: Told["docs"]): JsonObject[] {
  return [...new Set(operations.map(({ tag }) => tag))].map((name) => {
    const services = operations.filter(({ tag }) => tag === name).map(({ service }) => service.typeName);
    return {
      name: line(name),
      description: [...new Set(services.map((service) => docs[service]).filter(Boolean))].join(" ") || undefined,
    };
  });
}

/** The components that other parts of a document refer to, and those that these refer to in turn, in their order. */
function referredOnly(components: JsonObject, others: Json): JsonObject {
  const referred = new Set<string>();
  const open: Json[] = [others];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [name, member] of Object.entries(next)) {
      if (member === undefined) continue;
      const [, kind, called] = (name === "$ref" && REFERENCE.exec(String(member))) || [];
      if (kind === undefined || called === undefined) open.push(member);
      else if (!referred.has(`${kind}/${called}`)) {
        referred.add(`${kind}/${called}`);
        open.push((components[kind] as JsonObject | undefined)?.[called] ?? null);
      }
    }
  }
  const kept = (kind: string, named: object) =>
    Object.fromEntries(Object.entries(named).filter(([name]) => referred.has(`${kind}/${name}`)));
  return Object.fromEntries(
    Object.entries(components).map(([kind, named]) => [
      kind,
      // Operations name these, and don't refer to them.
      kind === "securitySchemes" ? named : named && kept(kind, named as JsonObject),
    ]),
  );
}

const REFERENCE = /^#\/components\/(\w+)\/([\w.-]+)$/;
