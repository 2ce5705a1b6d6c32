import { status } from "@grpc/grpc-js";
import { Controller, Injectable, Module } from "@nestjs/common";
import { GrpcMethod } from "@nestjs/microservices";
import { Db } from "mongodb";
import { type Category, failure } from "./grpc.js";
import { MongoModule } from "./mongo.js";

@Injectable()
export class CategoryService {
  constructor(private readonly db: Db) {}

  async get(id: number): Promise<Category> {
    const doc = await this.db.collection<Omit<Category, "id"> & { _id: number }>("categories").findOne({ _id: id });
    if (!doc) throw failure(status.NOT_FOUND, "CATEGORY_NOT_FOUND", `No category has the id ${id}.`);
    const { _id, ...category } = doc;
    return { id: _id, ...category };
  }
}

@Controller()
export class CategoryController {
  constructor(private readonly categories: CategoryService) {}

  @GrpcMethod("CategoryService")
  getCategory({ id }: { id: number }): Promise<Category> {
    return this.categories.get(id);
  }
}

@Module({ imports: [MongoModule], controllers: [CategoryController], providers: [CategoryService] })
export class CategoryModule {}
