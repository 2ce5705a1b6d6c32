/** The whole petstore for a test: five or more processes on ports of their own, and clients for every endpoint. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { ProcessName, ServiceName } from "../../processes/names.ts";
import { openGrpc } from "./grpc.ts";
import { freePorts, type Instance, instancesOf, inTurn, select, urlOf, type Which } from "./instances.ts";
import { openPlace } from "./mongodb.ts";
import { createProcesses, type Env, PATIENCE_MS, type Processes, type StorePlace } from "./processes.ts";

export interface PetstoreOptions {
  /** Environment of every process. With TLS_CERT the test has to bring its own clients. */
  readonly env?: Env;
  /** Environment of all replicas of a kind, until they are restarted. */
  readonly services?: Partial<Record<ProcessName, Env>>;
  /** Replicas of each kind. Several share a store, which then is in MongoDB. By default PETSTORE_TEST_REPLICAS, or one. */
  readonly replicas?: number;
  /** The address of MongoDB, for a test that brings its own. */
  readonly mongodbUri?: string;
  /** The directory of the embedded store, for a test that brings its own. It is used whichever store is tested. */
  readonly dataDir?: string;
  /** Whether all of it is one process. By default PETSTORE_TEST_SINGLE_PROCESS says so. */
  readonly isSingle?: boolean;
}

export interface Petstore extends Processes, AsyncDisposable {
  /** The gateway's address, without a base path or a slash at the end. Of several gateways each in turn. */
  readonly http: string;
  /** Where the services keep their data. */
  readonly store: StorePlace;
  /** The address of the first process that `which` names. */
  url(which: Which): string;
  /** gRPC to the service itself, to each of its replicas in turn. */
  transport(desc: DescService): Transport;
  client<S extends DescService>(desc: S): Client<S>;
  /** Connect through the gateway, or through each of several in turn. */
  readonly endpoint: Transport;
  connect<S extends DescService>(desc: S): Client<S>;
  /** Ends all processes and removes the data. */
  stop(): Promise<void>;
}

/**
 * Starts the processes on an empty store. Resolves when every gateway finds all of them ready. The store is the embedded one,
 * or with PETSTORE_TEST_STORE=mongodb databases in MongoDB that are removed with the petstore. With PETSTORE_TEST_LINK=off its
 * processes call each other by plain RPCs, with PETSTORE_TEST_SINGLE_PROCESS=1 all of it is one process.
 */
export async function startPetstore(options: PetstoreOptions = {}): Promise<Petstore> {
  const { replicas = Number(process.env.PETSTORE_TEST_REPLICAS ?? 1) } = options;
  const stack = new AsyncDisposableStack();
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "petstore-")));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  try {
    if (options.dataDir) return await startOn({ dataDir, mongodbUri: undefined }, { ...options, replicas: 1 }, stack);
    const isShared = process.env.PETSTORE_TEST_STORE === "mongodb" || replicas > 1;
    const mongodbUri = options.mongodbUri ?? (isShared ? stack.use(await openPlace()).uri : undefined);
    return await startOn({ dataDir, mongodbUri }, { ...options, replicas }, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startOn(
  store: StorePlace,
  { env, services, isSingle, replicas }: PetstoreOptions & { readonly replicas: number },
  stack: AsyncDisposableStack,
): Promise<Petstore> {
  const scheme = env?.TLS_CERT === undefined ? "http" : "https";
  for (;;) {
    const instances = instancesOf(await freePorts(replicas), replicas);
    const running = createProcesses({ store, instances, env, isSingle });
    try {
      await Promise.all(instances.map(({ kind, name }) => running.start(name, services?.[kind])));
      for (const gateway of select(instances, "gateway"))
        await allReady(urlOf(gateway, scheme) + (env?.HTTP_BASE_PATH ?? ""));
      stack.defer(() => running.stop());
      return petstore(running, { instances, store }, stack);
    } catch (error) {
      await running.stop();
      // Another test may have taken a port between the check and the start.
      if (!/port \d+ is taken/.test(`${error}`)) throw error;
    }
  }
}

function petstore(
  running: Processes,
  { instances, store }: { instances: readonly Instance[]; store: StorePlace },
  stack: AsyncDisposableStack,
): Petstore {
  const transports = new Map<ServiceName, Transport>();
  const transport = (desc: DescService) => {
    const name = serviceOf(desc);
    const known = transports.get(name) ?? through(select(instances, name).map(grpc));
    transports.set(name, known);
    return known;
  };
  function grpc(instance: Instance): Transport {
    const { transport, close } = openGrpc(urlOf(instance));
    stack.defer(close);
    return transport;
  }
  const gateways = select(instances, "gateway").map((gateway) => urlOf(gateway));
  const gateway = inTurn(gateways);
  const endpoint = through(gateways.map((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })));
  const stop = () => stack.disposeAsync();
  return {
    ...running,
    get http() {
      return gateway();
    },
    store,
    url: (which) => urlOf(select(instances, which)[0]),
    transport,
    client: (desc) => createClient(desc, transport(desc)),
    endpoint,
    connect: (desc) => createClient(desc, endpoint),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Uses the transports in turn. */
function through(transports: readonly Transport[]): Transport {
  const next = inTurn(transports);
  return { unary: (...call) => next().unary(...call), stream: (...call) => next().stream(...call) };
}

/** The service of a descriptor: "pet" for "petstore.pet.v1.PetService" and "petstore.internal.v1.PetInternalService". */
function serviceOf({ name }: DescService): ServiceName {
  return name.replace(/(Internal)?Service$/, "").toLowerCase() as ServiceName;
}

async function allReady(gateway: string): Promise<void> {
  const limit = Date.now() + PATIENCE_MS;
  for (;;) {
    const said = await readiness(gateway);
    if (said.includes('"failing":[]') && !said.includes("degraded")) return;
    if (Date.now() > limit) throw new Error(`The petstore is not ready: ${said}`);
    await sleep(50);
  }
}

/** The readiness of a gateway. The certificate is not verified, since other tests do that. */
async function readiness(gateway: string): Promise<string> {
  const get = gateway.startsWith("https:") ? getHttps : getHttp;
  const [answer] = await once(get(`${gateway}/readyz`, { rejectUnauthorized: false, agent: false }), "response");
  return text(answer);
}
