import { status } from "@grpc/grpc-js";
import { Controller, Injectable, Module } from "@nestjs/common";
import { GrpcMethod } from "@nestjs/microservices";
import { type Collection, Db, type Filter } from "mongodb";
import { failure, type ListPetsRequest, type ListPetsResponse, type Pet, type Status } from "./grpc.js";
import { MongoModule } from "./mongo.js";

const MAX_PAGE = 100;

interface PetDoc {
  _id: number;
  name: string;
  categoryId: number;
  status: Status;
}

const toPet = ({ _id, name, categoryId, status }: PetDoc): Pet => ({ id: _id, name, categoryId, status });

export const petNotFound = (id: number) => failure(status.NOT_FOUND, "PET_NOT_FOUND", `No pet has the id ${id}.`);

@Injectable()
export class PetService {
  private readonly pets: Collection<PetDoc>;

  constructor(db: Db) {
    this.pets = db.collection("pets");
  }

  async get(id: number): Promise<Pet> {
    const doc = await this.pets.findOne({ _id: id });
    if (!doc) throw petNotFound(id);
    return toPet(doc);
  }

  async setStatus(id: number, status: Status): Promise<Pet> {
    const doc = await this.pets.findOneAndUpdate({ _id: id }, { $set: { status } }, { returnDocument: "after" });
    if (!doc) throw petNotFound(id);
    return toPet(doc);
  }

  async list(request: ListPetsRequest): Promise<ListPetsResponse> {
    const limit = Math.min(request.limit ?? MAX_PAGE, MAX_PAGE);
    // The extra record shows whether there is another page.
    const docs = await this.pets
      .find(filterOf(request))
      .sort({ _id: request.orderBy === "id" ? 1 : -1 })
      .limit(limit + 1)
      .toArray();
    const page = docs.slice(0, limit);
    const last = page.at(-1);
    const nextPageToken = last && docs.length > limit ? Buffer.from(`${last._id}`).toString("base64url") : "";
    return { pets: page.map(toPet), nextPageToken };
  }
}

function filterOf({ pageToken, id, categoryId, status: statuses, orderBy }: ListPetsRequest): Filter<PetDoc> {
  const ids = {
    ...(id?.length && { $in: id }),
    ...(pageToken && { [orderBy === "id" ? "$gt" : "$lt"]: readToken(pageToken) }),
  };
  return {
    ...(categoryId !== undefined && { categoryId }),
    ...(statuses?.length && { status: statuses.length === 1 ? statuses[0] : { $in: statuses } }),
    ...(Object.keys(ids).length > 0 && { _id: ids }),
  };
}

function readToken(token: string): number {
  const text = Buffer.from(token, "base64url").toString();
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw failure(
    status.INVALID_ARGUMENT,
    "INVALID_PAGE_TOKEN",
    "pageToken: This is not a token that the list gave out.",
  );
}

@Controller()
export class PetController {
  constructor(private readonly pets: PetService) {}

  @GrpcMethod("PetService")
  getPet({ id }: { id: number }): Promise<Pet> {
    return this.pets.get(id);
  }

  @GrpcMethod("PetService")
  listPets(request: ListPetsRequest): Promise<ListPetsResponse> {
    return this.pets.list(request);
  }

  @GrpcMethod("PetService")
  setPetStatus({ id, status }: { id: number; status: Status }): Promise<Pet> {
    return this.pets.setStatus(id, status);
  }
}

@Module({ imports: [MongoModule], controllers: [PetController], providers: [PetService] })
export class PetModule {}
