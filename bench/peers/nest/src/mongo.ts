import { Inject, Module, type OnApplicationShutdown } from "@nestjs/common";
import { Db, MongoClient } from "mongodb";

/** The database of a service, injected as `Db`. */
@Module({
  providers: [
    {
      provide: MongoClient,
      useFactory: () =>
        new MongoClient(process.env.MONGODB_URI ?? "", {
          readConcern: { level: "majority" },
          writeConcern: { w: "majority", journal: true },
        }).connect(),
    },
    {
      provide: Db,
      inject: [MongoClient],
      useFactory: (client: MongoClient) => client.db(process.env.MONGODB_DATABASE),
    },
  ],
  exports: [Db],
})
export class MongoModule implements OnApplicationShutdown {
  constructor(@Inject(MongoClient) private readonly client: MongoClient) {}

  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
  }
}
