/** `node main.js gateway|pet|category|order|inventory` runs one process of the petstore, which loads only what it needs. */
import "reflect-metadata";
import type { Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { MicroserviceOptions } from "@nestjs/microservices";
import { addressOf, grpcServer, type ProcessName, type ServiceName } from "./grpc.js";

const modules: Record<ServiceName, () => Promise<Type>> = {
  pet: async () => (await import("./pet.js")).PetModule,
  category: async () => (await import("./category.js")).CategoryModule,
  order: async () => (await import("./order.js")).OrderModule,
  inventory: async () => (await import("./inventory.js")).InventoryModule,
};

async function bootstrap(name: ProcessName): Promise<void> {
  if (name === "gateway") {
    const { createGateway } = await import("./gateway/gateway.js");
    const app = await createGateway();
    const [host = "", port = ""] = addressOf(name).split(":");
    await app.enableShutdownHooks().listen(Number(port), host);
  } else {
    const app = await NestFactory.createMicroservice<MicroserviceOptions>(await modules[name](), {
      ...grpcServer(name),
      logger: ["fatal", "error", "warn"],
    });
    await app.enableShutdownHooks().listen();
  }
}

await bootstrap(process.argv[2] as ProcessName);
