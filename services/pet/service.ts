import type { Client } from "@connectrpc/connect";
import type { Budget, Call } from "@petstore/rpc/call";
import { implement } from "@petstore/rpc/server/handlers";
import type { Decide } from "@petstore/store/port";
import type { CategoryInternalService } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { PetInternalService, type StatusNews } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { type ListPetsRequest, PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { DomainError } from "../resource/errors.ts";
import { createExpiry, removeTombstones, withExpiry } from "../resource/expiry.ts";
import { settling } from "../resource/finish-on-read.ts";
import { accepted, createKeys, KEYS } from "../resource/idempotency-keys.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
import { readPage } from "../resource/page.ts";
import { fromPetStatus, storedId } from "../resource/record.ts";
import { removing, sweeping } from "../resource/recovery-worker.ts";
import { driveIntent, endDeletion, isLeaving } from "./advance-intent.ts";
import { driveCreation, fateOf, type PetContext, unfinished } from "./create-pet.ts";
import { createGatekeeper } from "./deletion-guard.ts";
import {
  changeOf,
  GATES,
  type IntentEnd,
  isTombstone,
  NO_CATEGORY,
  PETS,
  type PetDoc,
  paramsOf,
  type Refusal,
  shown,
  toPet,
} from "./model.ts";
import {
  type Admission,
  applyStatus,
  type Begun,
  beginDeletion,
  beginUpdate,
  insert,
  insertVoid,
  petNotFound,
  refusalError,
} from "./rules.ts";

/** How long before its deadline a write that meets others' unfinished intents gives up, in milliseconds. */
const MARGIN_MS = 100;

export interface Peers extends Pick<PetContext, "inventory"> {
  readonly categories: Client<typeof CategoryInternalService>;
}

type Begin = (admission: Admission | undefined) => Decide<PetDoc, Begun>;

export async function createPetService(deps: Deps, { inventory, categories }: Peers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const pets = withCaller(withExpiry(await store.collection(PETS), isTombstone, expiry));
  const gates = withExpiry(await store.collection(GATES), ({ closed }) => closed, expiry);
  const end = (doc: PetDoc, budget: Budget) => endDeletion(context, doc, budget);
  const gatekeeper = createGatekeeper({ ...deps, pets, gates, categories, endDeletion: end });
  const context: PetContext = { ...deps, pets, gatekeeper, inventory };
  const keys = createKeys(
    await store.collection(KEYS),
    {
      nextId: (budget) => store.nextId("pet", budget),
      fate: async (id, budget) => fateOf(await pets.get(id, budget)),
      giveUp: (id, budget) => pets.update(id, insertVoid(id), budget),
    },
    deps,
  );
  const isListed = (doc: PetDoc | undefined): doc is PetDoc => doc?.listed === true;

  const settled = settling<PetDoc>({ isLeaving, end });

  /** What stands against pets joining the category, asked before anything is written. */
  async function refusalOf(categoryId: number, budget: Budget): Promise<Refusal | undefined> {
    const verdict = categoryId === NO_CATEGORY ? "gone" : await gatekeeper.admit(categoryId, budget);
    if (verdict === "go") return undefined;
    return verdict === "gone" ? "CATEGORY_NOT_FOUND" : "CONCURRENT_UPDATE";
  }

  /** Begins a write, after asking for what it needs and finishing the one that is in its way, and takes it to its end. */
  async function write(id: number, begin: Begin, call: Call): Promise<IntentEnd> {
    let admission: Admission | undefined;
    while (deps.clock() + MARGIN_MS < call.deadline) {
      const begun = await pets.update(id, begin(admission), call);
      if (begun.kind === "done") return { op: 0, shown: begun.view };
      if (begun.kind === "not admitted") {
        admission = (await refusalOf(begun.categoryId, call)) ?? "admitted";
        continue;
      }
      if (begun.kind === "busy") {
        await driveIntent(context, id, begun.op, call).catch(asConcurrent);
        continue;
      }
      const end = await driveIntent(context, id, begun.op, call);
      if (!end) throw unfinished();
      if (end.refusal) throw refusalError(end.refusal);
      return end;
    }
    throw concurrent();
  }

  const publicService = implement(PetService, {
    async listPets(request, call) {
      const { docs, nextPageToken } = await readPage<PetDoc>(request, {
        filter: [request.categoryId, [...request.status].sort()],
        ids: request.id,
        getMany: (ids) => pets.getMany(ids, call),
        list: (place) => pets.list({ ...place, where: whereOf(request) }, call),
        matches: (doc) => isListed(doc) && matches(request, doc),
        settle: (docs) => settled.many(docs, call),
      });
      return { pets: docs.map(shown), nextPageToken };
    },

    async createPet({ pet, requestId }, call) {
      const params = paramsOf(pet);
      if (requestId === undefined) {
        const refusal = await refusalOf(params.categoryId, call);
        if (refusal) throw refusalError(refusal);
      }
      return keys.create(call, { rpc: "CreatePet", requestId, params }, async (id, params) => {
        if (!(await pets.get(id, call))) {
          // Under a key a refusal is written down too, so that no late attempt makes the pet after all.
          const refusal = requestId === undefined ? undefined : await refusalOf(params.categoryId, call);
          await pets.update(id, refusal ? insertVoid(id, refusal) : insert(id, params), call);
        }
        const ended = await driveCreation(context, id, call);
        if (ended.fate !== "accepted") return ended;
        const { firstStatus = "available" } = ended.answer;
        return accepted({ pet: toPet(id, { ...params, status: firstStatus, version: 1 }) });
      });
    },

    async getPet({ petId }, call) {
      const id = storedId(petId);
      const doc = id === undefined ? undefined : await pets.get(id, { deadline: call.deadline, latest: true });
      const found = await settled.one(doc, call);
      if (!found) throw petNotFound(petId);
      return { pet: shown(found) };
    },

    async batchGetPets({ petId }, call) {
      const ids = petId.map(storedId).filter((id) => id !== undefined);
      return { pets: (await settled.many(await pets.getMany(ids, call), call)).map(shown) };
    },

    async updatePet(request, call) {
      const id = storedId(request.petId);
      if (id === undefined) throw petNotFound(request.petId);
      const change = changeOf(request);
      const begin: Begin = (admission) => beginUpdate(request.petId, change, request, admission);
      const { shown: view } = await write(id, begin, call);
      if (!view) throw unfinished();
      return { pet: toPet(id, view) };
    },

    async deletePet({ petId, ...condition }, call) {
      const id = storedId(petId);
      if (id === undefined) throw petNotFound(petId);
      await write(id, () => beginDeletion(petId, condition), call);
      return {};
    },
  });

  const internalService = implement(PetInternalService, {
    async applyStatuses({ statuses }, call) {
      const apply = async ({ petId, status, statusRev }: StatusNews) => {
        const stock = { status: fromPetStatus(status), statusRev: Number(statusRev) };
        await pets.update(Number(petId), applyStatus(petId, stock), call);
        return petId;
      };
      const ends = await Promise.allSettled(statuses.map(apply));
      const [failed] = ends.filter((end) => end.status === "rejected");
      const applied = ends.flatMap((end) => (end.status === "fulfilled" ? end.value : []));
      if (failed && applied.length === 0) throw failed.reason;
      return { petId: applied };
    },
    closeCategory: async ({ categoryId, op }, call) => ({
      membership: await gatekeeper.close(Number(categoryId), Number(op), call),
    }),
    async openCategory({ categoryId, op }, call) {
      await gatekeeper.open(Number(categoryId), Number(op), call);
      return {};
    },
  });

  return {
    implementations: [publicService, internalService],
    workers: [
      sweeping(
        {
          name: "pet.unfinished",
          everyMs: 2_000,
          list: (batch, budget) => pets.list({ ...batch, where: { todo: true } }, budget),
          work: ({ _id, intent }, budget) =>
            intent ? driveIntent(context, _id, intent.op, budget) : driveCreation(context, _id, budget),
        },
        deps,
      ),
      removing("pet.keys", keys.sweep, deps),
      removing("pet.tombstones", (limit, budget) => removeTombstones(pets, expiry, limit, budget), deps),
      removing("pet.gates", gatekeeper.sweep, deps),
    ],
  };
}

const concurrent = () =>
  new DomainError("CONCURRENT_UPDATE", "Other writes to the pet are just being finished. Try again.");

/** Another's write waits for something that is not decided. This one has not begun, so it is refused. */
function asConcurrent(error: unknown): never {
  throw error instanceof DomainError && error.reason === "UNAVAILABLE" ? concurrent() : error;
}

function whereOf({ categoryId, status }: ListPetsRequest) {
  const listed = true as const;
  // An id beyond 2^53-1 matches nothing, and neither does -1.
  const category = categoryId === undefined ? undefined : (storedId(categoryId) ?? -1);
  const statuses = status.map(fromPetStatus);
  if (category === undefined) return statuses.length === 0 ? { listed } : { listed, status: statuses };
  return statuses.length === 0 ? { listed, categoryId: category } : { listed, categoryId: category, status: statuses };
}

const matches = ({ categoryId, status }: ListPetsRequest, doc: PetDoc): boolean =>
  (categoryId === undefined || categoryId === BigInt(doc.categoryId)) &&
  (status.length === 0 || status.map(fromPetStatus).includes(doc.status));
