/** Tables of path templates and of the requests that they take. A service is made for each table; its RPCs are R0, R1, ... */
import type { DescService, FileRegistry } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { compileProtos, serviceOf } from "../../fixtures/compile.ts";
import { surveyOf } from "../../index.ts";
import { ask } from "./ask.ts";
import { genericBackend } from "./backend.ts";
import { gatewaysOf } from "./way.ts";

export interface RouteTable {
  /** What other gateways' tests it restates. */
  readonly from: string;
  /** Templates that are served. */
  readonly rules?: readonly string[];
  readonly requests?: readonly (Differs & {
    /** "GET" if it is not given, as the rules have. */
    readonly method?: string;
    readonly path: string;
    /** The template that takes it; null for none. */
    readonly rule: string | null;
    /** The request message, in proto3 JSON. */
    readonly fields?: object;
    /** 404 if no template takes it and nothing is said. */
    readonly status?: number;
  })[];
  /** Templates that a contract must not have, and words that the refusal says. */
  readonly refuses?: readonly (Differs & { readonly rule: string; readonly says: string })[];
}

/** What their gateway does where ours does something else, and why. */
interface Differs {
  readonly theirs?: string;
  readonly because?: string;
}

export function runRoutes(tables: readonly RouteTable[]): void {
  let contract: FileRegistry;
  beforeAll(() => {
    contract = compileProtos(Object.fromEntries(tables.map((table, i) => [`table${i}.proto`, protoOf(table, i)])));
  });
  describe.each(tables.map((table, i) => ({ ...table, i })))(
    "$i $from",
    ({ i, rules = [], requests = [], refuses = [] }) => {
      test("refuses templates", () => {
        const { refused } = surveyOf(serviceOf(contract, `table${i}.Refused`));
        const said = refused.map(({ reason }) => reason);
        expect(refuses.map(({ rule, says }, n) => [rule, said[n]?.includes(says) || said[n]])).toEqual(
          refuses.map(({ rule }) => [rule, true]),
        );
      });
      test("takes requests", async () => {
        const gateway = await open(contract, serviceOf(contract, `table${i}.Served`));
        try {
          for (const request of requests)
            expect(await gateway.answer(request.path, request.method, rules)).toEqual(asked(request));
        } finally {
          await gateway.close();
        }
      });
    },
  );
}

const asked = ({ path, rule, fields = {}, status }: NonNullable<RouteTable["requests"]>[number]) => ({
  path,
  rule,
  status: status ?? (rule === null ? 404 : 200),
  ...(rule !== null && { fields }),
});

async function open(contract: FileRegistry, service: DescService) {
  const backend = genericBackend(contract);
  const gateways = gatewaysOf([service], createRouterTransport(backend.routes));
  return {
    close: gateways.close,
    async answer(path: string, method: string | undefined, rules: readonly string[]) {
      await backend.prepare({});
      const { status } = await ask(await gateways.portFor({}), {
        path,
        ...(method && { method }),
      });
      const [call] = await backend.calls();
      const rule = call ? rules[Number(call.method.slice(call.method.lastIndexOf("/R") + 2))] : null;
      return { path, rule, status, ...(call && { fields: call.messages[0] }) };
    },
  };
}

interface Tree extends Map<string, Tree> {}

/** The contract of a table: one message has what its templates name, as strings. */
function protoOf({ rules = [], refuses = [] }: RouteTable, i: number): string {
  const refused = refuses.map(({ rule }) => rule);
  const fields: Tree = new Map();
  for (const rule of [...rules, ...refused])
    for (const [, name = ""] of rule.matchAll(/\{([a-z_]\w*(?:\.[a-z_]\w*)*)/gi))
      name.split(".").reduce((tree, part) => {
        const below = tree.get(part) ?? new Map();
        tree.set(part, below);
        return below;
      }, fields);
  const rpcs = (templates: readonly string[]) =>
    templates.map(
      (path, n) => `rpc R${n}(Fields) returns (Fields) { option (google.api.http) = {get: ${JSON.stringify(path)}}; }`,
    );
  return `syntax = "proto3"; package table${i}; import "google/api/annotations.proto";
service Served { ${rpcs(rules).join("\n")} }
service Refused { ${rpcs(refused).join("\n")} }
${messageOf("Fields", fields)}`;
}

function messageOf(name: string, fields: Tree): string {
  const parts = [...fields].map(([field, below], n) =>
    below.size === 0
      ? `string ${field} = ${n + 1};`
      : `${messageOf(`M_${field}`, below)} M_${field} ${field} = ${n + 1};`,
  );
  return `message ${name} { ${parts.join(" ")} }`;
}
