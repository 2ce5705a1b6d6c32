/**
 * A peer: a program that serves the petstore's HTTP interface as a team would have written it. A peer is one folder,
 * `bench/peers/<name>/`, whose `peer.ts` exports `peer`; the runner knows nothing else of it.
 *
 * Every peer but the floor serves the following, except for what only a workload asks that it `lacks`, with the same bodies
 * as the petstore's own gateway (`sameness.ts` compares them before anything is measured):
 *
 * - `GET /pets/{id}`: 200 and `{"id": 7, "name": "...", "categoryId": 3, "status": "available"}`, or 404.
 * - `GET /pets?limit=20`, newest (highest id) first, and the filters `categoryId=3`, `status=available`, both, or none; a
 *   full page has the address of the next one: `Link: <...>; rel="next"`.
 * - `POST /store/orders` with `{"petId": 7, "quantity": 1}`: 201 and `{"id": 1, "petId": 7, "quantity": 1, "complete": false}`;
 *   404 when there is no such pet, 409 when its status is not available or its stock is too small. Storing the order and
 *   taking its units from the stock happen together or not at all, and no stock falls below 0.
 * - For the workload `orders`: with an `Idempotency-Key`, the same order is stored once and answered as at first for 24 hours,
 *   and another one is 422. `GET /store/orders/{id}` and `GET /store/orders?petId=7&limit=20`, as of pets. `PATCH
 *   /store/orders/{id}` with `{"complete": true}`: 200 and the order, also if it was complete. `DELETE /store/orders/{id}`: 204
 *   and its units are back in the stock, or 409 when it is complete. 404 when there is no such order.
 *
 * Every peer guarantees: writes are acknowledged by a majority and in the journal, reads are of the majority
 * (`writeConcern {w: "majority", j: true}`, `readConcern "majority"`, from the primary), and ids of orders are numbers that
 * are never used twice. An error is `{code, message, status}`. For each request one line of JSON goes to standard output:
 * method, path, status, milliseconds.
 */

/** Where a peer has its data, and where it listens. */
export interface Place {
  /** The address of a replica set. */
  readonly mongoUrl: string;
  /** Filled by the runner before the start (`seed/plain.ts`): `PlainData` says with what. */
  readonly database: string;
  /** The port of 127.0.0.1 for the HTTP interface. The nine ports after it are free as well. */
  readonly port: number;
  /** A directory for data that is not in MongoDB. */
  readonly dataDir: string;
}

export interface RunningPeer {
  /** Without a slash at the end. */
  readonly url: string;
  /** The ids of all processes that serve requests: their processor time and memory are measured. */
  readonly pids: readonly number[];
  /** Ends all processes of the peer; resolves when they have ended. */
  stop(): Promise<void>;
}

export interface Peer {
  /** The folder's name, by which `--peers` chooses it. */
  readonly name: string;
  /** For tables and charts, such as "Fastify + mongodb, one process". */
  readonly title: string;
  /** The data that it is filled with: plain collections, or the petstore's documents in MongoDB or in its embedded store. */
  readonly data: "plain" | "petstore" | "embedded" | "none";
  /** The workloads that it does not serve. */
  readonly lacks?: readonly string[];
  /** Why it can't run here, such as that a tool is missing; then it is left out, and the output says so. */
  unavailable?(): string | undefined;
  /** Installs or builds what it needs, once: into `node_modules/.cache/bench/<name>`. */
  prepare?(progress: (text: string) => void): Promise<void>;
  /** Starts all its processes, without waiting until they answer. `programs.ts` has functions to start and end one. */
  start(place: Place): Promise<RunningPeer>;
}

/**
 * The database of a plain peer before it starts. Integers are stored as BSON's int32, nothing is stored as a double. A peer
 * may write further fields and collections. It must keep orders and stock consistent: the runner counts both in the end.
 *
 * These indexes exist: `pets` on `{categoryId, _id}`, `{status, _id}` and `{categoryId, status, _id}`; `orders` on `{petId,
 * _id}`; `keys` on `{at}`, which removes them.
 */
export interface PlainData {
  pets: { _id: number; name: string; categoryId: number; status: "available" | "pending" | "sold" };
  /** `_id` is the pet's id. */
  inventory: { _id: number; quantity: number; status: "available" | "pending" | "sold" };
  /** Empty at first. */
  orders: { _id: number; petId: number; quantity: number; complete: boolean };
  /** The order that each idempotency key stands for. Empty at first. They expire a day after `at`. */
  keys: { _id: string; body: string; orderId: number; at: Date };
  /** `{_id: "orders", last: 0}`: the last id that was used. A peer may take several at a time. */
  counters: { _id: string; last: number };
}
