import { Controller, Get, Inject, type OnModuleInit, Param, ParseIntPipe } from "@nestjs/common";
import type { ClientGrpc } from "@nestjs/microservices";
import type { Observable } from "rxjs";
import type { Category, CategoryClient } from "../grpc.js";

@Controller("categories")
export class CategoriesController implements OnModuleInit {
  private categories: CategoryClient;

  constructor(@Inject("category") private readonly client: ClientGrpc) {}

  onModuleInit(): void {
    this.categories = this.client.getService<CategoryClient>("CategoryService");
  }

  @Get(":id")
  get(@Param("id", ParseIntPipe) id: number): Observable<Category> {
    return this.categories.getCategory({ id });
  }
}
