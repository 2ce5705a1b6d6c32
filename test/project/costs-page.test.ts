/** The table of docs/reliability.md that says what each operation costs is what the services do. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Costs, type Count, costsOf } from "../costs/count.ts";
import { type Costed, operations } from "../costs/operations.ts";

const PAGE = "docs/reliability.md";

// Deadlines are those of a clock that only writes move: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const shown = ({ awaited, behind }: Count) => (behind === 0 ? `${awaited}` : `${awaited} (${behind})`);

function row({ name, is }: Costed, { inTurn, write, id, call, read }: Costs): string {
  const [request, ...about] = name.split(", ");
  const answer = is === "done" ? "" : `\`${is}\``;
  const cells = [`\`${request}\``, about.join(", "), answer, inTurn, shown(write), shown(id), shown(call)];
  return `| ${[...cells, shown(read)].join(" | ")} |`;
}

test("the page has the table (`npx vitest run test/project/costs-page.test.ts -u` writes it)", async () => {
  const rows: string[] = [];
  for (const operation of operations) {
    const costs = await costsOf(operation);
    const { outcome } = costs;
    expect([operation.name, outcome.is === "refused" ? outcome.reason : outcome.is]).toEqual([
      operation.name,
      operation.is,
    ]);
    rows.push(row(operation, costs));
  }
  const head = "| operation | | refused with | writes one after the other | writes | ids | calls | reads |";
  const table = [head, "|---|---|---|--:|--:|--:|--:|--:|", ...rows].join("\n");
  const page = readFileSync(PAGE, "utf8");
  const made = page.replace(
    /(<!-- costs: made by test\/project\/costs-page\.test\.ts -->\n)[\s\S]*?(<!-- end -->)/,
    (_, begin, end) => `${begin}\n${table}\n\n${end}`,
  );
  expect(made).toContain(table);
  await expect(made).toMatchFileSnapshot(`../../${PAGE}`);
});
