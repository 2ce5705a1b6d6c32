/** The way through the command, which learns the contract by reflection. It starts processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { CaseOptions } from "./case.ts";
import { grpcServer, onePerOptions, type WayKind } from "./way.ts";

/** What each option is on the command line; undefined for a value that it can't be told. */
const FLAGS: Readonly<Record<string, (value: never) => readonly string[] | undefined>> = {
  codec: (value: string) => ["--codec", value],
  errors: (value: unknown) => (typeof value === "string" ? ["--errors", value] : undefined),
  omitUnpopulated: whether("--omit-unpopulated"),
  originalNames: whether("--original-names"),
  enumNumbers: whether("--enum-numbers"),
  ignoreUnknown: whether("--ignore-unknown"),
  unbound: whether("--unbound"),
  grpcMetadata: whether("--grpc-metadata"),
  allowHeaders: (names: readonly string[]) => names.flatMap((name) => ["--allow-header", name]),
  limits: (limits: Readonly<Record<string, number>>) => {
    const flags = Object.entries(limits).map(([name, value]) =>
      name === "bodyBytes"
        ? ["--max-bytes", `${value}`]
        : name === "jsonDepth"
          ? ["--json-depth", `${value}`]
          : name === "requestMs"
            ? ["--timeout", `${value}ms`]
            : undefined,
    );
    return flags.includes(undefined) ? undefined : flags.flatMap((flag) => flag ?? []);
  },
};

function whether(flag: string) {
  return (value: boolean) => (value ? [flag] : []);
}

/** Undefined where the command has no flag for one of the options. */
function flagsOf(options: CaseOptions): string[] | undefined {
  const flags = Object.entries(options).map(([name, value]) => FLAGS[name]?.(value as never));
  return flags.includes(undefined) ? undefined : flags.flatMap((flag) => flag ?? []);
}

export const COMMAND: WayKind = {
  name: "through the command",
  takes: (options) => flagsOf(options) !== undefined,
  async open(contract) {
    const server = await grpcServer(contract);
    const gateways = onePerOptions((options) => startCommand(server.url, flagsOf(options) ?? []));
    return {
      backend: server.backend,
      portFor: gateways.portFor,
      async close() {
        await gateways.close();
        await server.close();
      },
    };
  },
};

export async function startCommand(url: string, flags: readonly string[]) {
  const main = join(import.meta.dirname, "../../command/main.ts");
  const child = spawn(process.execPath, [main, "--port", "0", "--reflect", url, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data) => {
      said += data;
      const [, port] = / at http:\S+:(\d+) /.exec(said) ?? [];
      if (port) resolve(Number(port));
    });
  const ended = once(child, "close");
  void ended.then(() => reject(new Error(`The command ended: ${said}`)));
  return {
    port: await promise,
    close: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}
