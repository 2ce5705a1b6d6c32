import { Controller, Inject, Injectable, Logger, Module, type OnModuleInit } from "@nestjs/common";
import { type ClientGrpc, GrpcMethod } from "@nestjs/microservices";
import { type Collection, Db } from "mongodb";
import { answerOf, grpcClients, type InventoryClient, type Order } from "./grpc.js";
import { MongoModule } from "./mongo.js";

/** Ids that are fetched at a time. Those that are unused when the process ends are skipped. */
const BLOCK = 50;

@Injectable()
export class OrderIds {
  private last = 0;
  private upTo = 0;
  private fetching: Promise<void> | undefined;

  constructor(private readonly db: Db) {}

  async next(): Promise<number> {
    while (this.last === this.upTo) {
      this.fetching ??= this.fetch().finally(() => {
        this.fetching = undefined;
      });
      await this.fetching;
    }
    return ++this.last;
  }

  private async fetch(): Promise<void> {
    const counters = this.db.collection<{ _id: string; last: number }>("counters");
    const doc = await counters.findOneAndUpdate(
      { _id: "orders" },
      { $inc: { last: BLOCK } },
      { upsert: true, returnDocument: "after" },
    );
    this.upTo = doc?.last ?? 0;
    this.last = this.upTo - BLOCK;
  }
}

interface OrderDoc {
  _id: number;
  petId?: number;
  quantity?: number;
  shipDate?: Date;
  complete?: boolean;
}

@Injectable()
export class OrderService implements OnModuleInit {
  private readonly logger = new Logger(OrderService.name);
  private readonly orders: Collection<OrderDoc>;
  private inventory: InventoryClient;

  constructor(
    db: Db,
    private readonly ids: OrderIds,
    @Inject("inventory") private readonly client: ClientGrpc,
  ) {
    this.orders = db.collection("orders");
  }

  onModuleInit(): void {
    this.inventory = this.client.getService<InventoryClient>("InventoryService");
  }

  async create({ petId, quantity, complete, shipDate }: Order): Promise<Order> {
    const id = await this.ids.next();
    if (petId === undefined) return this.insert({ id, quantity, shipDate, complete });
    const order = { id, petId, quantity: quantity ?? 1, shipDate, complete: complete ?? false };
    const units = { petId, quantity: order.quantity };
    await answerOf(this.inventory.reserve(units));
    try {
      return await this.insert(order);
    } catch (error) {
      // The units go back, unless this process dies first.
      await answerOf(this.inventory.release(units)).catch((lost) =>
        this.logger.error(`${units.quantity} units of pet ${petId} are lost with order ${id}: ${lost}`),
      );
      throw error;
    }
  }

  private async insert(order: Order & { id: number }): Promise<Order> {
    const { id, petId, quantity, shipDate, complete } = order;
    await this.orders.insertOne({
      _id: id,
      ...(petId !== undefined && { petId }),
      ...(quantity !== undefined && { quantity }),
      ...(shipDate && { shipDate: new Date(shipDate.seconds * 1000 + shipDate.nanos / 1e6) }),
      ...(complete !== undefined && { complete }),
    });
    return order;
  }
}

@Controller()
export class OrderController {
  constructor(private readonly orders: OrderService) {}

  @GrpcMethod("OrderService")
  createOrder(order: Order): Promise<Order> {
    return this.orders.create(order);
  }
}

@Module({
  imports: [MongoModule, grpcClients("inventory")],
  controllers: [OrderController],
  providers: [OrderService, OrderIds],
})
export class OrderModule {}
