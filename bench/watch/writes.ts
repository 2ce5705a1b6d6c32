/** The writer: changes pets at random moments, at a constant rate, whatever became of earlier changes. */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { seededRandom } from "@petstore/runtime/clock";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Quantiles, quantiles } from "./quantiles.ts";

/** Milliseconds of a clock that all processes of a machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

const PREFIX = "write ";
/** A write is recognized by the name that it gives its pet. */
const nameOf = (write: number): string => `${PREFIX}${write}`;
export const writeNamed = (name = ""): number | undefined =>
  name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : undefined;

/** The number of a write, and when it was due. */
export type Due = readonly [write: number, dueAt: number];

export interface Written {
  readonly stored: readonly Due[];
  readonly failed: number;
  /** Delays of the stored writes, in milliseconds from when they were due to their answers. */
  readonly delays: Quantiles;
}

/** Number of pets that are changed, in turn, so that no two changes of one pet overlap. */
const PETS = 200;
const LATEST_MS = 10_000;

export function createWriter(port: number) {
  const client = createClient(PetService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
  let last = 0;
  const random = seededRandom(1);
  return async (seconds: number, perSecond: number): Promise<Written> => {
    const stored: Due[] = [];
    const delays: number[] = [];
    let failed = 0;
    async function write(dueAt: number): Promise<void> {
      const number = ++last;
      const request = {
        petId: BigInt(1 + (number % PETS)),
        pet: { name: nameOf(number) },
        updateMask: { paths: ["name"] },
      };
      try {
        await client.updatePet(request, { timeoutMs: LATEST_MS });
        delays.push(now() - dueAt);
        stored.push([number, dueAt]);
      } catch {
        failed++;
      }
    }
    const all: Promise<void>[] = [];
    const begin = now();
    for (let i = 0; i < seconds * perSecond; i++) {
      // Random moments: at even ones, a write would always or never meet the events of the previous one.
      const dueAt = begin + ((i + random()) * 1000) / perSecond;
      await sleep(Math.max(0, dueAt - now()));
      all.push(write(dueAt));
    }
    await Promise.all(all);
    return { stored, failed, delays: quantiles(delays) };
  };
}
