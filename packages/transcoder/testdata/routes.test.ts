/** Which template takes which path: vanguard-go's and grpc-httpjson-transcoding's cases. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type RouteTable, runRoutes } from "./run/routes.ts";

const tablesOf = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, name, "routes.json"), "utf8")) as RouteTable[];

runRoutes(["vanguard", "envoy"].flatMap(tablesOf));
