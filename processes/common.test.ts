import { readEnvironment } from "@petstore/runtime/environment";
import { traceConfig, traceSettings } from "@petstore/trace/settings";
import { expect, test } from "vitest";
import { ofInstance } from "./common.ts";

test("a process is described by its name, and by what the variables say instead", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
  const resourceOf = (environment: Record<string, string>) =>
    ofInstance(traceConfig(readEnvironment({ ...endpoint, ...environment }, traceSettings)), "pet-2")?.resource;
  const own = { "service.namespace": "petstore", "service.name": "pet", "service.instance.id": "pet-2" };
  expect(resourceOf({})).toEqual(own);
  expect(resourceOf({ OTEL_SERVICE_NAME: "shop" })).toEqual({ ...own, "service.name": "shop" });
  expect(ofInstance(undefined, "pet")).toBeUndefined();
});
