import { Module, ValidationPipe } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { type FastifyBaseLogger, LogController } from "fastify";
import { destination, pino } from "pino";
import { grpcClients } from "../grpc.js";
import { CategoriesController } from "./categories.controller.js";
import { ErrorsFilter } from "./errors.filter.js";
import { PetsController } from "./pets.controller.js";
import { StoreController } from "./store.controller.js";

@Module({
  imports: [grpcClients("pet", "category", "order", "inventory")],
  controllers: [PetsController, CategoriesController, StoreController],
})
export class GatewayModule {}

export async function createGateway(): Promise<NestFastifyApplication> {
  const log: FastifyBaseLogger = pino(destination({ sync: false }));
  const adapter = new FastifyAdapter({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
  });
  // One line per request, when its answer is sent.
  adapter.getInstance().addHook("onResponse", async ({ method, url, log }, reply) => {
    log.info({ method, path: url.split("?", 1)[0], status: reply.statusCode, ms: Math.round(reply.elapsedTime) });
  });
  const app = await NestFactory.create<NestFastifyApplication>(GatewayModule, adapter, {
    logger: ["fatal", "error", "warn"],
  });
  app.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true, forbidNonWhitelisted: true }));
  app.useGlobalFilters(new ErrorsFilter());
  return app;
}
