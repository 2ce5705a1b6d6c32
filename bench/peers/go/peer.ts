import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Peer } from "../../peer.ts";
import { startProgram } from "../../programs.ts";
import { build, buildDir } from "../build.ts";
import { startServices } from "../services.ts";

const SOURCES = ["main", "gateway", "errors", "pet", "category", "order", "inventory"].map((name) => `${name}.go`);
const FILES = [...SOURCES, "go.mod", "go.sum", "buf.yaml", "buf.gen.yaml"];
const buf = join(import.meta.dirname, "../../../node_modules/.bin/buf");

export const peer: Peer = {
  name: "go",
  title: "grpc-gateway + grpc-go, five processes",
  data: "plain",
  lacks: ["orders"],
  unavailable() {
    // Run outside of the module: inside, Go would download and report the version that the module names.
    const { stdout } = spawnSync("go", ["env", "GOVERSION"], { cwd: tmpdir(), encoding: "utf8" });
    const [, minor = "0"] = /^go1\.(\d+)/.exec(stdout ?? "") ?? [];
    if (Number(minor) >= 26) return undefined;
    return `Go 1.26 or newer is needed, and there is ${stdout ? stdout.trim() : "none"}. Install it: https://go.dev/dl`;
  },
  prepare: (progress) =>
    build(
      {
        name: "go",
        sources: {
          ...Object.fromEntries(FILES.map((file) => [file, `bench/peers/go/${file}`])),
          "proto/petstore.proto": "bench/peers/petstore.proto",
          "proto/google/api": "node_modules/@protobufs/google/api",
        },
        commands: [
          [buf, "generate"],
          ["go", "build", "-trimpath", "-buildvcs=false", "-o", "petstore", "."],
        ],
        env: { CGO_ENABLED: "0" },
      },
      progress,
    ),
  start: (place) => startServices(place, (name, env) => startProgram(join(buildDir("go"), "petstore"), [name], env)),
};
