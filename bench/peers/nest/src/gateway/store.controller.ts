import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  type OnModuleInit,
  Param,
  ParseIntPipe,
  Post,
  Res,
} from "@nestjs/common";
import type { ClientGrpc } from "@nestjs/microservices";
import { IsBoolean, IsInt, IsISO8601, IsOptional, Min } from "class-validator";
import type { FastifyReply } from "fastify";
import { map, type Observable } from "rxjs";
import type { InventoryClient, InventoryItem, Order, OrderClient } from "../grpc.js";

export class NewOrder {
  @IsOptional() @IsInt() @Min(1) petId?: number;
  @IsOptional() @IsInt() @Min(1) quantity?: number;
  @IsOptional() @IsISO8601({ strict: true }) shipDate?: string;
  @IsOptional() @IsBoolean() complete?: boolean;
}

@Controller("store")
export class StoreController implements OnModuleInit {
  private orders: OrderClient;
  private inventory: InventoryClient;

  constructor(
    @Inject("order") private readonly orderClient: ClientGrpc,
    @Inject("inventory") private readonly inventoryClient: ClientGrpc,
  ) {}

  onModuleInit(): void {
    this.orders = this.orderClient.getService<OrderClient>("OrderService");
    this.inventory = this.inventoryClient.getService<InventoryClient>("InventoryService");
  }

  @Post("orders")
  @HttpCode(201)
  create(@Body() order: NewOrder, @Res({ passthrough: true }) reply: FastifyReply): Observable<object> {
    return this.orders.createOrder(toMessage(order)).pipe(
      map((created) => {
        reply.header("location", `/store/orders/${created.id}`);
        return toJson(created);
      }),
    );
  }

  @Get("inventory/:petId")
  get(@Param("petId", ParseIntPipe) petId: number): Observable<InventoryItem> {
    return this.inventory.getInventoryItem({ petId });
  }
}

function toMessage({ shipDate, ...order }: NewOrder): Order {
  if (shipDate === undefined) return order;
  const ms = Date.parse(shipDate);
  return { ...order, shipDate: { seconds: Math.floor(ms / 1000), nanos: (((ms % 1000) + 1000) % 1000) * 1e6 } };
}

function toJson({ id, petId, quantity, shipDate, complete }: Order): object {
  const date = shipDate ? new Date(shipDate.seconds * 1000 + shipDate.nanos / 1e6) : undefined;
  return { id, petId, quantity, shipDate: date, complete };
}
