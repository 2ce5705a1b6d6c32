/** The RPCs of pets. */
import { create } from "@bufbuild/protobuf";
import type { Call, CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import type { Decide } from "@petstore/store/port";
import { PetInternalService, type StatusUpdate } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import {
  type ListPetsRequest,
  ListPetsRequestSchema,
  type PetEvent,
  PetEventSchema,
  PetService,
  WatchPetsResponseSchema,
} from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { DomainError } from "../records/errors.ts";
import { type FinishOnRead, finishOnRead } from "../records/finish-on-read.ts";
import { maxPageSize, readNamedPage, type Source } from "../records/page.ts";
import { fromPetStatus, storedId, storedIds, toPetStatus } from "../records/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../records/watch.ts";
import { advanceIntent, finishDeletion, isDeletionUnderWay } from "./change-pet.ts";
import { advanceCreation, checkCategory, writePet } from "./create-pet.ts";
import { changeOf, type IntentEnd, type PetDoc, type PetView, paramsOf, petOf, toPet } from "./model.ts";
import {
  applyStatus,
  type Begun,
  beginDeletion,
  beginUpdate,
  type CategoryCheck,
  petNotFound,
  refusalError,
  unfinished,
} from "./rules.ts";
import type { PetContext } from "./service.ts";

/** A write that meets unfinished intents of other writes gives up this long before its deadline, in milliseconds. */
const MARGIN_MS = 100;

/** What a list or a watch filters by. */
type Filters = Pick<ListPetsRequest, "id" | "categoryId" | "status">;

/** Begins a write, given what is known of the category that it moves the pet to. */
type Begin = (category: CategoryCheck | undefined) => Decide<PetDoc, Begun>;

export function createPetHandlers(context: PetContext): Implementation[] {
  const { pets, names, keys, deletionGuard, clock } = context;
  const maxSize = maxPageSize(ListPetsRequestSchema);
  const finishing = finishOnRead<PetDoc>(
    { isUnderWay: isDeletionUnderWay, finish: (doc, callContext) => finishDeletion(context, doc, callContext) },
    context,
  );
  const toEvent = (attributes: EventAttributes, id: number, view: PetView) =>
    create(PetEventSchema, { ...attributes, pet: toPet(id, view) });
  const watch = createWatch<PetDoc, PetView, PetEvent>(
    { kind: "pet", collection: pets, response: WatchPetsResponseSchema, toEvent },
    context,
  );

  const listed = (filters: Filters, callContext: CallContext, finish: FinishOnRead<PetDoc>): Source<PetDoc> => ({
    maxSize,
    filter: [filters.categoryId, [...filters.status].sort()],
    ids: filters.id,
    getMany: (ids) => pets.getMany(ids, callContext),
    list: (start) => pets.list({ ...start, where: whereOf(filters) }, callContext),
    matches: (doc) => doc.visible === true && matches(filters, doc),
    finish,
  });

  /**
   * Checks the category and finishes an earlier intent if need be, then begins the write and advances it to its end. The
   * loop ends, because the store begins nothing after the deadline.
   */
  async function write(id: number, begin: Begin, call: Call): Promise<IntentEnd> {
    let category: CategoryCheck | undefined;
    for (;;) {
      const begun = await pets.update(id, begin(category), call);
      if (begun.kind === "done") return { op: 0, shown: begun.view };
      if (begun.kind === "category unchecked") {
        category = (await checkCategory(context, begun.categoryId, call)) ?? "exists";
        continue;
      }
      if (begun.kind === "busy") {
        if (clock() + MARGIN_MS >= call.deadline) throw concurrent();
        await advanceIntent(context, begun.pet, begun.op, call).catch(asConcurrent);
        continue;
      }
      const end = await advanceIntent(context, begun.pet, begun.op, call);
      if (!end) throw unfinished();
      if (end.refusal) throw refusalError(end.refusal);
      return end;
    }
  }

  const publicService = implement(PetService, {
    async listPets(request, call) {
      const { docs, nextPageToken } = await readNamedPage(
        request,
        listed(request, call, finishing.read(call)),
        names,
        call,
      );
      return { pets: docs.map(petOf), nextPageToken };
    },

    async createPet({ pet: sent, requestId }, call) {
      const params = paramsOf(sent);
      if (requestId === undefined) {
        // Before an id is taken, so that a refusal leaves nothing behind.
        const refusal = await checkCategory(context, params.categoryId, call);
        if (refusal) throw refusalError(refusal);
      }
      const creation = { rpc: "CreatePet", requestId, params, stored: (id: number) => pets.get(id, call) };
      const pet = await keys.create(call, creation, async ({ id, isKeyed }, stored) => {
        const written = stored ?? (await writePet(context, { id, params, isKeyed }, call));
        return advanceCreation(context, written, call);
      });
      return { pet: toPet(pet._id, { ...params, status: pet.firstStatus ?? "available", version: 1 }) };
    },

    async getPet({ petId }, call) {
      const id = storedId(petId);
      const doc = id === undefined ? undefined : await pets.get(id, call);
      const [found] = await finishing.read(call).asked(doc ? [doc] : []);
      if (!found) throw petNotFound(petId);
      return { pet: petOf(found) };
    },

    async batchGetPets({ petId }, call) {
      const docs = await pets.getMany(storedIds(petId), call);
      return { pets: (await finishing.read(call).asked(docs)).map(petOf) };
    },

    async updatePet(request, call) {
      const id = storedId(request.petId);
      if (id === undefined) throw petNotFound(request.petId);
      const change = changeOf(request);
      const begin: Begin = (category) => beginUpdate(request.petId, change, request, category);
      const { shown: view } = await write(id, begin, call);
      if (!view) throw unfinished();
      return { pet: toPet(id, view) };
    },

    async deletePet({ petId, ...preconditions }, call) {
      const id = storedId(petId);
      if (id === undefined) throw petNotFound(petId);
      await write(id, () => beginDeletion(petId, preconditions), call);
      return {};
    },

    watchPets(request, call) {
      const filters = { id: request.petId, categoryId: request.categoryId, status: [] };
      const isAsked = oneOf(request.petId);
      const filter = {
        source: (callContext: CallContext) => listed(filters, callContext, finishing.snapshot(callContext)),
        matches: (id: number, { categoryId }: Partial<PetView>) =>
          isAsked(id) && (request.categoryId === undefined || Number(request.categoryId) === categoryId),
      };
      return watch(request, filter, call);
    },
  });

  const internalService = implement(PetInternalService, {
    async applyStatuses({ statuses }, call) {
      const apply = async ({ petId, status, statusRev }: StatusUpdate) => {
        const stock = { status: fromPetStatus(status), statusRev: Number(statusRev) };
        const kept = await pets.update(Number(petId), applyStatus(petId, stock), call);
        return { petId, kept: kept && { petId, status: toPetStatus(kept.status), statusRev: BigInt(kept.statusRev) } };
      };
      const results = await Promise.allSettled(statuses.map(apply));
      const [failed] = results.filter((result) => result.status === "rejected");
      const applied = results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
      if (failed && applied.length === 0) throw failed.reason;
      return { petId: applied.map(({ petId }) => petId), kept: applied.flatMap(({ kept }) => kept ?? []) };
    },
    closeCategory: ({ categoryId, op }, call) => deletionGuard.close(Number(categoryId), Number(op), call),
    async openCategory({ categoryId, op }, call) {
      await deletionGuard.open(Number(categoryId), Number(op), call);
      return {};
    },
  });

  return [publicService, internalService];
}

const concurrent = () =>
  new DomainError("CONCURRENT_UPDATE", "Other writes to the pet are just being finished. Try again.");

/** The earlier intent waits for a category whose deletion is undecided. This write has not begun, so it is refused. */
function asConcurrent(error: unknown): never {
  throw error instanceof DomainError && error.reason === "UNAVAILABLE" ? concurrent() : error;
}

function whereOf({ categoryId, status }: Filters) {
  const visible = true as const;
  // An id beyond 2^53-1 matches nothing, and neither does -1.
  const category = categoryId === undefined ? undefined : (storedId(categoryId) ?? -1);
  const statuses = status.map(fromPetStatus);
  if (category === undefined) return statuses.length === 0 ? { visible } : { visible, status: statuses };
  return statuses.length === 0
    ? { visible, categoryId: category }
    : { visible, categoryId: category, status: statuses };
}

const matches = ({ categoryId, status }: Filters, doc: PetDoc): boolean =>
  (categoryId === undefined || categoryId === BigInt(doc.categoryId)) &&
  (status.length === 0 || status.map(fromPetStatus).includes(doc.status));
