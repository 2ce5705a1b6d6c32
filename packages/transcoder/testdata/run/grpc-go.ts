/** The way to a server of grpc-go, which testdata/go has. It starts a process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type FileRegistry, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Backend, Call } from "./backend.ts";
import { before, gatewaysByGrpc, type Served, type WayKind } from "./way.ts";

/** `program` is what `go build` made of testdata/go. */
export const grpcGo = (program: string): WayKind => ({
  name: "to grpc-go",
  takes: () => true,
  async open(contract) {
    return before(await startServer(program, contract), gatewaysByGrpc(contract));
  },
});

async function startServer(program: string, contract: FileRegistry): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), "contract-"));
  const set = join(folder, "set.binpb");
  const file = [...contract.files].map(({ proto }) => proto);
  writeFileSync(set, toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file })));
  // Without its input it ends.
  const child = spawn(program, [set], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  const [said] = await Promise.race([once(child.stdout, "data"), ended]);
  const [, url, control] = /^gRPC at (\S+), control at (\S+)\.$/m.exec(String(said)) ?? [];
  if (!url || !control) throw new Error(`The Go server did not start: ${said}`);
  const backend: Backend = {
    async prepare(answer) {
      await fetch(`http://${control}/prepare`, { method: "POST", body: JSON.stringify(answer) });
    },
    calls: async () => (await (await fetch(`http://${control}/calls`)).json()) as Call[],
  };
  const close = async () => {
    child.stdin.end();
    await ended;
    rmSync(folder, { recursive: true });
  };
  return { url: `http://${url}`, backend, close };
}
