/** Where the command's contract comes from, and how its services are reached. */
import { connect } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { BrokenContract, type Contract, readDescriptorSet } from "../source/contract.ts";
import { reflect } from "../source/reflection.ts";
import type { Settings } from "./flags.ts";
import { grpcTransport } from "./grpc.ts";

/** How long a target may take to accept a connection at the start, in milliseconds. */
const CONNECT_MS = 5000;

/** The largest answer to a question of reflection, in bytes. */
const REFLECTED_BYTES = 64 * 1024 * 1024;

/** Returns what reads the contract, each time anew. */
export function contractReader({ source, reflectHeaders, targetTls }: Settings): () => Promise<Contract> {
  if (source.descriptorSet !== undefined) return () => readDescriptorSet(source.descriptorSet);
  // Reflection is a stream both ways, which gRPC alone has everywhere.
  const transport = createGrpcTransport({
    baseUrl: source.reflect,
    nodeOptions: targetTls,
    readMaxBytes: REFLECTED_BYTES,
  });
  return async () => {
    try {
      return await reflect(transport, reflectHeaders);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      throw new BrokenContract(`${source.reflect} can't be asked for its contract: ${error.message}`);
    }
  };
}

/** Returns the way to a service. All services of one target share its connection. */
export function transportsOf(
  { targets, protocol, targetTls, library }: Settings,
  called: (transport: Transport, url: string) => Transport,
) {
  const made = new Map<string, Transport>();
  const make = (baseUrl: string): Transport => {
    const common = { baseUrl, nodeOptions: targetTls, readMaxBytes: library.limits.bodyBytes };
    if (protocol === "grpc") return grpcTransport(common);
    // Over HTTP/1.1, which servers of both speak everywhere.
    const options = { ...common, httpVersion: "1.1" as const };
    return protocol === "grpcweb" ? createGrpcWebTransport(options) : createConnectTransport(options);
  };
  /** Undefined for a service that no target is for. */
  return ({ typeName }: DescService): Transport | undefined => {
    const url = targets.get(typeName) ?? targets.get("");
    if (url === undefined) return undefined;
    const transport = made.get(url) ?? called(make(url), url);
    made.set(url, transport);
    return transport;
  };
}

/** @throws Error that names the first target that accepts no connection, or none that can be trusted */
export async function ensureReachable({ targets, targetTls }: Pick<Settings, "targets" | "targetTls">): Promise<void> {
  await Promise.all(Array.from(new Set(targets.values()), (target) => reach(target, targetTls, CONNECT_MS)));
}

/** Rejects with an Error that names the target, if no connection is made to it within so many milliseconds. */
export function reach(target: string, targetTls: Settings["targetTls"], ms: number): Promise<void> {
  const { hostname, port, protocol } = new URL(target);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const isSecure = protocol === "https:";
  const place = { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || (isSecure ? 443 : 80)) };
  const socket = isSecure
    ? connectSecurely({ ...place, ...targetTls, ALPNProtocols: ["h2", "http/1.1"] })
    : connect(place);
  let isThere = false;
  const giveUp = (why: string) => reject(new Error(`The target ${target} is away: ${why}`));
  socket.setTimeout(ms, () => giveUp(`it took no connection within ${ms / 1000} s`));
  socket.once("connect", () => {
    isThere = true;
  });
  socket.once(isSecure ? "secureConnect" : "connect", resolve);
  socket.on("error", ({ message }) => {
    if (!isThere) return giveUp(message);
    reject(
      new Error(
        `The target ${target} can't be spoken to by TLS: ${message}. The CA of its certificate is named by --cacert FILE.`,
      ),
    );
  });
  return promise.finally(() => socket.destroy());
}
