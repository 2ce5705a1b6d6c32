import { status } from "@grpc/grpc-js";
import { Controller, Inject, Injectable, Logger, Module, type OnModuleInit } from "@nestjs/common";
import { type ClientGrpc, GrpcMethod } from "@nestjs/microservices";
import { type Collection, Db, type Filter } from "mongodb";
import { answerOf, failure, grpcClients, type InventoryItem, type PetClient, type Status, type Units } from "./grpc.js";
import { MongoModule } from "./mongo.js";
import { petNotFound } from "./pet.js";

interface InventoryDoc {
  /** The pet's id. */
  _id: number;
  quantity: number;
  status: Status;
}

const toItem = ({ _id, quantity, status }: InventoryDoc): InventoryItem => ({ petId: _id, quantity, status });

@Injectable()
export class InventoryService implements OnModuleInit {
  private readonly logger = new Logger(InventoryService.name);
  private readonly entries: Collection<InventoryDoc>;
  private pets: PetClient;

  constructor(
    db: Db,
    @Inject("pet") private readonly client: ClientGrpc,
  ) {
    this.entries = db.collection("inventory");
  }

  onModuleInit(): void {
    this.pets = this.client.getService<PetClient>("PetService");
  }

  async get(petId: number): Promise<InventoryItem> {
    const doc = await this.entries.findOne({ _id: petId });
    if (!doc) throw petNotFound(petId);
    return toItem(doc);
  }

  /** Reserves units for an order, all or none. */
  async reserve({ petId, quantity }: Units): Promise<InventoryItem> {
    const enough = { _id: petId, status: "available", quantity: { $gte: quantity } } as const;
    const item = await this.add(enough, -quantity);
    if (!item) throw await this.refusal({ petId, quantity });
    if (item.quantity === 0) await this.tell(item);
    return item;
  }

  async release({ petId, quantity }: Units): Promise<InventoryItem> {
    const item = await this.add({ _id: petId }, quantity);
    if (!item) throw petNotFound(petId);
    if (item.quantity === quantity) await this.tell(item);
    return item;
  }

  /** Changes a stock and the status that follows from it. */
  private async add(filter: Filter<InventoryDoc>, units: number): Promise<InventoryItem | undefined> {
    const update = [
      { $set: { quantity: { $add: ["$quantity", units] } } },
      { $set: { status: { $cond: [{ $gt: ["$quantity", 0] }, "available", "pending"] } } },
    ];
    const doc = await this.entries.findOneAndUpdate(filter, update, { returnDocument: "after" });
    return doc ? toItem(doc) : undefined;
  }

  /** Passes a new status on to the pet. If that fails the pet keeps its old one. */
  private async tell({ petId, status }: InventoryItem): Promise<void> {
    try {
      await answerOf(this.pets.setPetStatus({ id: petId, status }));
    } catch (error) {
      this.logger.warn(`The status of pet ${petId} is out of date: ${error}`);
    }
  }

  private async refusal({ petId, quantity }: Units): Promise<Error> {
    const item = await this.get(petId);
    return item.status === "available"
      ? failure(
          status.FAILED_PRECONDITION,
          "INSUFFICIENT_STOCK",
          `Pet ${petId} has fewer than ${quantity} units in stock. Order less.`,
        )
      : failure(
          status.FAILED_PRECONDITION,
          "PET_NOT_AVAILABLE",
          `Pet ${petId} is not available now. Order it when its status is available again.`,
        );
  }
}

@Controller()
export class InventoryController {
  constructor(private readonly inventory: InventoryService) {}

  @GrpcMethod("InventoryService")
  getInventoryItem({ petId }: { petId: number }): Promise<InventoryItem> {
    return this.inventory.get(petId);
  }

  @GrpcMethod("InventoryService")
  reserve(units: Units): Promise<InventoryItem> {
    return this.inventory.reserve(units);
  }

  @GrpcMethod("InventoryService")
  release(units: Units): Promise<InventoryItem> {
    return this.inventory.release(units);
  }
}

@Module({
  imports: [MongoModule, grpcClients("pet")],
  controllers: [InventoryController],
  providers: [InventoryService],
})
export class InventoryModule {}
