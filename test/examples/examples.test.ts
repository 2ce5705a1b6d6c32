/** Runs the examples as a reader would, each against the same petstore. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createPetstore } from "@petstore/client";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { exampleToolsMissing, HEY_API, pathFor, TYPESCRIPT } from "../harness/example-tools.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const PAGES = "examples/browser/";
/** Where the pages for browsers are: not where the petstore is. */
const pages = createServer((request, response) => {
  const file = globSync(`${PAGES}*`).find((path) => request.url?.split("?")[0] === path.slice(PAGES.length - 1));
  response.writeHead(file ? 200 : 404, { "content-type": "text/html" }).end(file && readFileSync(file));
});
let origin: string;

let petstore: Petstore;
beforeAll(async () => {
  await once(pages.listen(0, "127.0.0.1"), "listening");
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  petstore = await startPetstore({ env: { CORS_ORIGINS: origin } });
});
afterAll(async () => {
  await petstore?.stop();
  pages.close();
});

/** By its file, what runs it from the root: what has to be made first, and the example. */
type Examples = Readonly<Record<string, readonly string[]>>;

const examples: Examples = {
  "examples/curl/order.sh": ["sh examples/curl/order.sh"],
  "examples/buf-curl/order.sh": ["sh examples/buf-curl/order.sh"],
  "examples/node/order.ts": ["node examples/node/order.ts"],
};
const python: Examples = {
  "examples/python/order_http.py": ["python examples/python/order_http.py"],
  "examples/python/order_grpc.py": [
    "npx buf generate --template examples/python/buf.gen.yaml",
    "python examples/python/order_grpc.py",
  ],
};
const goStubs = "npx buf generate --template examples/go/buf.gen.yaml";
const go: Examples = {
  "examples/go/grpc/main.go": [goStubs, "go -C examples/go run ./grpc"],
  "examples/go/connect/main.go": [goStubs, "go -C examples/go run ./connect"],
};
/** By clients that others make from the document. */
const generated: Examples = {
  "examples/openapi/typescript/order.ts": [
    `cp examples/openapi/typescript/order.ts ${TYPESCRIPT}`,
    `cd ${TYPESCRIPT} && npx openapi-typescript $PETSTORE_URL/openapi.json -o petstore.ts`,
    `cd ${TYPESCRIPT} && npx tsc --strict --module nodenext --rewriteRelativeImportExtensions --types node order.ts`,
    `node ${TYPESCRIPT}/order.js`,
  ],
  "examples/openapi/python/order.py": [
    "cd examples/openapi/python && openapi-python-client generate --url $PETSTORE_URL/openapi.json --meta none --overwrite --output-path petstore_client",
    "python examples/openapi/python/order.py",
  ],
  "examples/openapi/go/main.go": [
    "mkdir -p examples/openapi/go/petstore",
    "go -C examples/openapi/go tool oapi-codegen -config generate.yaml $PETSTORE_URL/openapi.json",
    "go -C examples/openapi/go run .",
  ],
};

const [order, events] = ["examples/browser/order.html", "examples/browser/events.html"];

/** What it printed. Its addresses are those of this petstore. */
async function output(command: string, environment: "python" | "openapi-python"): Promise<string> {
  const port = new URL(petstore.url("gateway")).port;
  const env = { ...process.env, PATH: pathFor(environment), PETSTORE_URL: petstore.http, PORT_BASE: port };
  return (await promisify(execFile)("sh", ["-euc", command], { env })).stdout;
}

async function run(commands: readonly string[], environment: "python" | "openapi-python" = "python"): Promise<void> {
  let printed = "";
  for (const command of commands) printed = await output(command, environment);
  await expectSold(printed);
}

/** Whatever its form, each example tells three times what has become of the pet. */
async function expectSold(printed: string): Promise<void> {
  const statuses = [...printed.matchAll(/available|pending|sold/gi)].map(([status]) => status.toLowerCase());
  expect(statuses).toEqual(["available", "pending", "sold"]);

  const { pets, orders, inventory } = createPetstore({ baseUrl: petstore.http });
  const [pet] = (await pets.list({ limit: 1 }).pages().next()).value?.items ?? [];
  const [placed] = (await orders.list({ limit: 1 }).pages().next()).value?.items ?? [];
  expect(pet?.name).toBe("Rex");
  expect(placed).toMatchObject({ petId: pet?.id, quantity: 1, complete: true });
  expect(await inventory.get(pet?.id ?? 0)).toMatchObject({ status: "sold" });
}

/** A compiler on a busy machine. */
const TIMEOUT_MS = 300_000;

test.each(Object.entries(examples))("%s", (_, commands) => run(commands));

describe.skipIf(exampleToolsMissing)("with what .ci/examples installs", () => {
  test.each(Object.entries({ ...python, ...go }))("%s", (_, commands) => run(commands), TIMEOUT_MS);
  test.each(Object.entries(generated))("%s", (_, commands) => run(commands, "openapi-python"), TIMEOUT_MS);

  test(
    "a client by hey-api, which copies patterns into literals, compiles and takes the names that the petstore takes",
    async () => {
      const plugins = "@hey-api/client-fetch @hey-api/sdk zod valibot";
      const options = "--strict --module esnext --moduleResolution bundler --target es2022 --types node --skipLibCheck";
      const taken = `import { safeParse } from "valibot";
        import { vNewPet } from "./made/valibot.gen.js";
        import { zNewPet } from "./made/zod.gen.js";
        for (const name of ["Rex", "\\u{1f415}", "\\u2028", "\\0"]) {
          const pet = { name, categoryId: 1 };
          console.log(zNewPet.safeParse(pet).success, safeParse(vNewPet, pet).success);
        }`;
      const commands = [
        `cd ${HEY_API}`,
        `npx openapi-ts -i $PETSTORE_URL/openapi.json -o petstore -p ${plugins} --no-log-file >/dev/null`,
        `npx tsc ${options} --outDir made petstore/*.ts >&2`,
        `node --input-type=module -e '${taken}'`,
      ];
      expect(await output(commands.join("\n"), "python")).toBe("true true\ntrue true\nfalse false\nfalse false\n");
    },
    TIMEOUT_MS,
  );
});

describe.skipIf(chromiumMissing)("in a browser", () => {
  /** A page in Chromium, and what is in its list once it tells the end. */
  async function told(file: string, act: (page: Page) => Promise<unknown>, end: RegExp): Promise<readonly string[]> {
    const { startChromium } = await import("../harness/chromium.ts");
    await using chromium = await startChromium();
    const page = await chromium.newPage();
    await page.goto(`${origin}/${file.slice(PAGES.length)}?petstore=${petstore.http}`);
    await act(page);
    await page.getByText(end).waitFor();
    return await page.getByRole("listitem").allTextContents();
  }

  test(order, async () => {
    const lines = await told(order, (page) => page.getByRole("button").click(), /Rex is sold/);
    await expectSold(lines.join("\n"));
  });

  test(events, async () => {
    const { pets, categories } = createPetstore({ baseUrl: petstore.http });
    const category = await categories.create({ name: "cats" });
    const pet = await pets.create({ name: "Tom", categoryId: category.id });
    const lines = await told(
      events,
      async (page) => {
        await page.getByText(`Pet ${pet.id} is available`).waitFor(); // of the snapshot
        await run(["sh examples/curl/order.sh"]);
      },
      new RegExp(`Pet ${pet.id + 1} is sold`),
    );
    expect(lines.slice(-3).join("\n")).toMatch(/available\n.*pending\n.*sold/);
  });
});

describe.skipIf(chromiumMissing)("the client package", () => {
  test("in a page by React and Vite, whose server passes calls on to the petstore", async () => {
    const { build, preview } = await import("vite");
    vi.stubEnv("PETSTORE_URL", petstore.http);
    const outDir = await mkdtemp(join(tmpdir(), "shop-"));
    // Preact is React to a program as small as this one.
    const alias = { "react-dom/client": "preact/compat/client", react: "preact/compat" };
    const config = {
      root: "packages/client/example/shop",
      resolve: { alias },
      build: { outDir },
      logLevel: "error",
    } as const;
    await build(config);
    const server = await preview({ ...config, preview: { host: "127.0.0.1", port: 0 } });
    const { startChromium } = await import("../harness/chromium.ts");
    await using chromium = await startChromium();
    const page = await chromium.newPage();
    await page.goto(server.resolvedUrls?.local[0] ?? "");
    const { pets, categories } = createPetstore({ baseUrl: petstore.http });
    const category = await categories.create({ name: "horses" });
    await pets.create({ name: "Beauty", categoryId: category.id });
    await page.getByText("Beauty is available").waitFor();
    await page.getByRole("button", { name: "Order Beauty" }).click();
    await page.getByText(/^Order \d+ is placed\.$/).waitFor();
    await page.getByText("Beauty is pending").waitFor();
    await server.close();
    await rm(outDir, { recursive: true });
  });
});

test("no example is left out", () => {
  const made = ["examples/python/protoc_gen_python.py", "examples/go/gen/**", "examples/**/petstore*/**"];
  const found = globSync("examples/*/**/*.{sh,ts,py,go,html}", { exclude: made });
  expect(found.sort()).toEqual([...Object.keys({ ...examples, ...python, ...go, ...generated }), order, events].sort());
});
