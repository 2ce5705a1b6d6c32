import { join } from "node:path";
import type { Peer } from "../../peer.ts";
import { startProgram } from "../../programs.ts";
import { build, buildDir } from "../build.ts";
import { startServices } from "../services.ts";

export const peer: Peer = {
  name: "nest",
  title: "NestJS + gRPC, five processes",
  data: "plain",
  lacks: ["orders"],
  prepare: (progress) =>
    build(
      {
        name: "nest",
        sources: {
          ...Object.fromEntries(
            ["package.json", "package-lock.json", "tsconfig.json", "src"].map((path) => [
              path,
              `bench/peers/nest/${path}`,
            ]),
          ),
          "petstore.proto": "bench/peers/petstore.proto",
        },
        commands: [
          ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
          ["npm", "run", "build"],
        ],
      },
      progress,
    ),
  start(place) {
    const dir = buildDir("nest");
    const settings = { NODE_ENV: "production", NODE_COMPILE_CACHE: join(dir, "compile-cache") };
    return startServices(place, (name, env) =>
      startProgram(process.execPath, [join(dir, "dist/main.js"), name], { ...env, ...settings }),
    );
  },
};
