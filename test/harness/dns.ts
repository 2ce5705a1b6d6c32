/**
 * A DNS server for tests, which knows the names that it is told, and no other. Processes ask it by the system's own resolver:
 * they are started with a resolv.conf of their own, as pods have one.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "./programs.ts";

/** For `test.skipIf(...)`: port 53, and the file below /etc, need root. The reporter mentions it. */
export const dnsMissing = process.getuid?.() !== 0 || !["unshare", "mount"].every((name) => findProgram(name));

export interface Dns extends AsyncDisposable {
  /** The IPv4 addresses behind each name. */
  readonly names: Map<string, readonly string[]>;
  /** Of commands that are to ask this server. */
  readonly prefix: readonly string[];
}

/** `search` is what names without a dot are looked up in. */
export async function startDns(search: string): Promise<Dns> {
  const names = new Map<string, readonly string[]>();
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => socket.send(answer(query, names), port, address));
  const part = () => Math.floor(Math.random() * 256);
  const address = `127.53.${part()}.${part()}`;
  socket.bind(53, address);
  await once(socket, "listening");
  const dir = await mkdtemp(join(tmpdir(), "dns-"));
  const path = join(dir, "resolv.conf");
  await writeFile(path, `nameserver ${address}\nsearch ${search}\noptions ndots:5 timeout:1\n`);
  return {
    names,
    prefix: ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', path],
    async [Symbol.asyncDispose]() {
      socket.close();
      await rm(dir, { recursive: true });
    },
  };
}

const HEADER_BYTES = 12;
const NO_SUCH_NAME = 3;
const A = 1;
/** "The name in byte 12", which is that of the question (RFC 1035, 4.1.4). */
const SAME_NAME = [0xc0, HEADER_BYTES];

/** RFC 1035, for questions about one name. */
function answer(query: Buffer, names: Dns["names"]): Buffer {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(HEADER_BYTES, at + 5);
  const found = names.get(labels.join(".").toLowerCase());
  const addresses = query.readUInt16BE(at + 1) === A ? (found ?? []) : [];
  const [flags, code] = [0x81, 0x80 | (found ? 0 : NO_SUCH_NAME)];
  const head = [...query.subarray(0, 2), flags, code, 0, 1, 0, addresses.length, 0, 0, 0, 0];
  const seconds = [0, 0, 0, 0];
  const records = addresses.flatMap((one) => [
    ...SAME_NAME,
    0,
    A,
    0,
    1,
    ...seconds,
    0,
    4,
    ...one.split(".").map(Number),
  ]);
  return Buffer.concat([Buffer.from(head), question, Buffer.from(records)]);
}
