/** How the processes reach each other, and their messages: `petstore.proto` in TypeScript. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { Metadata, type ServiceError, type status } from "@grpc/grpc-js";
import { ClientsModule, type GrpcOptions, RpcException, Transport } from "@nestjs/microservices";
import { firstValueFrom, type Observable } from "rxjs";

export type ProcessName = "gateway" | ServiceName;
export type ServiceName = "pet" | "category" | "order" | "inventory";

export const addressOf = (name: ProcessName): string => process.env[`${name.toUpperCase()}_ADDR`] ?? "";

/** Sets one deadline for all calls, and lets calls wait for a service that has not started yet. */
const serviceConfig = { methodConfig: [{ name: [{}], timeout: "10s", waitForReady: true }], loadBalancingConfig: [] };

const options = (name: ServiceName): GrpcOptions["options"] => ({
  package: "petstore.v1",
  protoPath: join(import.meta.dirname, "../petstore.proto"),
  url: addressOf(name),
  loader: {
    longs: Number,
    defaults: true,
    // google/api/annotations.proto is part of protobufjs.
    includeDirs: [join(createRequire(import.meta.url).resolve("protobufjs/package.json"), "..")],
  },
  keepalive: { keepaliveTimeMs: 30_000, keepaliveTimeoutMs: 10_000 },
});

export const grpcServer = (name: ServiceName): GrpcOptions => ({ transport: Transport.GRPC, options: options(name) });

/** The clients of these services, injected by the services' names. */
export const grpcClients = (...names: readonly ServiceName[]) =>
  ClientsModule.register(
    names.map((name) => ({
      name,
      transport: Transport.GRPC,
      options: {
        ...options(name),
        channelOptions: {
          "grpc.service_config": JSON.stringify(serviceConfig),
          "grpc.initial_reconnect_backoff_ms": 50,
          "grpc.max_reconnect_backoff_ms": 5000,
        },
      },
    })),
  );

/** An error of a service: a gRPC status whose reason is the code of the HTTP interface. */
export function failure(code: status, reason: string, message: string): RpcException {
  const metadata = new Metadata();
  metadata.set("reason", reason);
  return new RpcException({ code, message, metadata });
}

/** Waits for the answer of another service, and passes its error on. */
export async function answerOf<T>(call: Observable<T>): Promise<T> {
  try {
    return await firstValueFrom(call);
  } catch (error) {
    const { code, details, metadata } = error as ServiceError;
    throw failure(code, `${metadata.get("reason")[0] ?? "UNAVAILABLE"}`, details);
  }
}

export type Status = "available" | "pending" | "sold";

export interface Pet {
  id: number;
  name: string;
  categoryId: number;
  status: Status;
}

export interface ListPetsRequest {
  limit?: number;
  pageToken?: string;
  id?: number[];
  categoryId?: number;
  status?: Status[];
  orderBy?: "id" | "-id";
}

export interface ListPetsResponse {
  pets: Pet[];
  nextPageToken: string;
}

export interface Category {
  id: number;
  name: string;
  description?: string;
}

export interface Order {
  id?: number;
  petId?: number;
  quantity?: number;
  shipDate?: { seconds: number; nanos: number } | null;
  complete?: boolean;
}

export interface InventoryItem {
  petId: number;
  quantity: number;
  status: Status;
}

export interface Units {
  petId: number;
  quantity: number;
}

export interface PetClient {
  getPet(request: { id: number }): Observable<Pet>;
  listPets(request: ListPetsRequest): Observable<ListPetsResponse>;
  setPetStatus(request: { id: number; status: Status }): Observable<Pet>;
}

export interface CategoryClient {
  getCategory(request: { id: number }): Observable<Category>;
}

export interface OrderClient {
  createOrder(request: Order): Observable<Order>;
}

export interface InventoryClient {
  getInventoryItem(request: { petId: number }): Observable<InventoryItem>;
  reserve(request: Units): Observable<InventoryItem>;
  release(request: Units): Observable<InventoryItem>;
}
