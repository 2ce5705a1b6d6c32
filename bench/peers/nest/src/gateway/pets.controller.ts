import { Controller, Get, Inject, type OnModuleInit, Param, ParseIntPipe, Query, Req, Res } from "@nestjs/common";
import type { ClientGrpc } from "@nestjs/microservices";
import { Transform, Type } from "class-transformer";
import { IsIn, IsInt, IsOptional, MaxLength, Min } from "class-validator";
import type { FastifyReply, FastifyRequest } from "fastify";
import { map, type Observable } from "rxjs";
import type { ListPetsRequest, Pet, PetClient, Status } from "../grpc.js";

const STATUSES: Status[] = ["available", "pending", "sold"];
/** A parameter that occurs once is a list of one value. */
const AsList = (each: (text: string) => unknown = String) => Transform(({ value }) => [value].flat().map(each));

export class ListPetsQuery implements ListPetsRequest {
  @IsOptional() @Type(() => Number) @IsInt() @Min(1) limit?: number;
  @IsOptional() @MaxLength(512) pageToken?: string;
  @IsOptional() @AsList(Number) @IsInt({ each: true }) id?: number[];
  @IsOptional() @Type(() => Number) @IsInt() categoryId?: number;
  @IsOptional() @AsList() @IsIn(STATUSES, { each: true }) status?: Status[];
  @IsOptional() @IsIn(["id", "-id"]) orderBy?: "id" | "-id";
}

@Controller("pets")
export class PetsController implements OnModuleInit {
  private pets: PetClient;

  constructor(@Inject("pet") private readonly client: ClientGrpc) {}

  onModuleInit(): void {
    this.pets = this.client.getService<PetClient>("PetService");
  }

  @Get(":id")
  get(@Param("id", ParseIntPipe) id: number): Observable<Pet> {
    return this.pets.getPet({ id });
  }

  @Get()
  list(
    @Query() query: ListPetsQuery,
    @Req() { url }: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Observable<Pet[]> {
    return this.pets.listPets(query).pipe(
      map(({ pets, nextPageToken }) => {
        if (nextPageToken) reply.header("link", `<${nextUrl(url, nextPageToken)}>; rel="next"`);
        return pets;
      }),
    );
  }
}

function nextUrl(url: string, pageToken: string): string {
  const [path = "", query] = url.split("?", 2);
  const params = new URLSearchParams(query);
  params.set("pageToken", pageToken);
  return `${path}?${params}`;
}
