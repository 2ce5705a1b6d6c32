/** What can be served of many services, as lines of text that are the same for the same contracts. */
import { type DescService, hasOption } from "@bufbuild/protobuf";
import { conflictsOf, surveyOf } from "../contract/operations.ts";
import { http } from "../gen/google/api/annotations_pb.ts";

/** Where a reason has no more RPCs than this, they are named. */
const NAMED = 24;

/** How many services are served whole, how many RPCs are served, and how many are refused for which reason. */
export function countsOf(services: Iterable<DescService>): string {
  let all = 0;
  let whole = 0;
  let rpcs = 0;
  const reasons = new Map<string, string[]>();
  for (const service of services) {
    const ruled = service.methods.filter((method) => hasOption(method, http));
    if (ruled.length === 0) continue;
    all++;
    rpcs += ruled.length;
    const { operations, refused: unserved } = surveyOf(service);
    const inConflict = conflictsOf(operations).length > 0;
    const refused = inConflict
      ? ruled.map((method) => ({ method, reason: "no request can tell two RPCs of the service apart" }))
      : unserved;
    if (refused.length === 0) whole++;
    for (const { method, reason } of refused) {
      const general = withoutNames(reason);
      const known = reasons.get(general);
      if (known) known.push(`${method.parent.typeName}/${method.name}`);
      else reasons.set(general, [`${method.parent.typeName}/${method.name}`]);
    }
  }
  const refused = [...reasons.values()].reduce((sum, methods) => sum + methods.length, 0);
  const lines = [`services served whole: ${whole} of ${all}`, `RPCs served: ${rpcs - refused} of ${rpcs}`];
  const sorted = [...reasons].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1));
  for (const [reason, methods] of sorted) {
    lines.push("", `${methods.length} refused: ${reason}`);
    if (methods.length <= NAMED) lines.push(...methods.sort().map((name) => `  ${name}`));
  }
  return `${lines.join("\n")}\n`;
}

/** What is the same about the reasons for different fields and paths. */
export const withoutNames = (reason: string): string =>
  reason
    .replaceAll(/"[^"]*"/g, '"…"')
    .replace(/^[\w.]+:/, "…:")
    .replace(/^[\w.]+(?= does not fit )/, "…")
    .replace(/(?<=^PATCH can.t merge within )[\w.]+/, "…");
