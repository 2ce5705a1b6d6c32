/** What is measured: gateways in front of one gRPC service in Go, each as its own page says that it is started. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "../../test/harness/programs.ts";
import { build, buildDir } from "../peers/build.ts";
import { type Program, startProgram } from "../programs.ts";
import { envoySettings } from "./envoy.ts";

const NAME = "shelves";
const root = join(import.meta.dirname, "../..");
const shelves = join(buildDir(NAME), NAME);
const descriptorSet = join(buildDir(NAME), "shelves.binpb");

/** Time limit for a start, in milliseconds. */
const PATIENCE_MS = 60_000;

export interface Gateway {
  readonly name: string;
  readonly title: string;
  /** Calls that it answers otherwise. */
  readonly lacks?: readonly string[];
  /** Serves `port` from the service at `servicePort`, both at 127.0.0.1. */
  readonly start: (port: number, servicePort: number) => Promise<Program>;
}

/** The one that the others are compared with. */
export const REFERENCE = "grpc-gateway";

const command = join(root, "packages/transcoder/command/main.ts");

const transcoderAt = (name: string, title: string, script: string): Gateway => ({
  name,
  title,
  start: (port, servicePort) =>
    startProgram(
      process.execPath,
      [script, "--reflect", `http://127.0.0.1:${servicePort}`, "--port", `${port}`],
      process.env.NODE_OPTIONS ? { NODE_OPTIONS: process.env.NODE_OPTIONS } : {},
    ),
});

/** Envoy takes part where there is one: `ENVOY` is its path, or it is in the `PATH`. `BASE` is another command to compare with. */
export function gatewaysOf({ ENVOY = findProgram("envoy"), BASE } = process.env): Gateway[] {
  return [
    {
      name: REFERENCE,
      title: "grpc-gateway",
      start: (port, servicePort) =>
        startProgram(shelves, ["gateway", `127.0.0.1:${port}`, `127.0.0.1:${servicePort}`], {}),
    },
    transcoderAt("connect-transcoder", "connect-transcoder", command),
    ...(BASE ? [transcoderAt("before", `connect-transcoder at ${BASE}`, BASE)] : []),
    ...(ENVOY
      ? [
          {
            name: "envoy",
            title: "Envoy",
            lacks: ["update"], // it makes no mask of a PATCH
            start: (port: number, servicePort: number) =>
              startProgram(
                ENVOY,
                [
                  "--config-yaml",
                  JSON.stringify(envoySettings(port, servicePort, descriptorSet)),
                  "--log-level",
                  "error",
                ],
                {},
              ),
          },
        ]
      : []),
  ];
}

export const startService = (port: number): Promise<Program> =>
  startProgram(shelves, ["service", `127.0.0.1:${port}`], {});

/** Resolves when something answers there. */
export async function answering(url: string, { pid }: Program): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok) return;
    if (performance.now() - startedAt > PATIENCE_MS || !existsSync(`/proc/${pid}`))
      throw new Error(`${url} does not answer: what was said stands above.`);
    await sleep(20);
  }
}

/** Builds the service and grpc-gateway. It needs Go 1.26. */
export function prepare(progress: (text: string) => void): Promise<void> {
  const files = ["main.go", "go.mod", "go.sum", "buf.yaml", "buf.gen.yaml"];
  const buf = join(root, "node_modules/.bin/buf");
  return build(
    {
      name: NAME,
      sources: {
        ...Object.fromEntries(files.map((file) => [file, `bench/transcoder/go/${file}`])),
        "proto/shelves.proto": "bench/transcoder/proto/shelves.proto",
        "proto/google/api": "node_modules/@protobufs/google/api",
      },
      commands: [
        [buf, "generate"],
        [buf, "build", "--path", "proto/shelves.proto", "-o", descriptorSet],
        ["go", "build", "-trimpath", "-buildvcs=false", "-o", NAME, "."],
      ],
      env: { CGO_ENABLED: "0" },
    },
    progress,
  );
}
