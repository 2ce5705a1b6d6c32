/** A petstore that sends its spans to the test. */
import type { OtlpReceiver } from "../harness/otlp-receiver.ts";
import { type PetstoreOptions, startPetstore } from "../harness/petstore.ts";

export const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
export const SPAN = "00f067aa0ba902b7";

/** The traceparent of a caller whose trace has this id. */
export const by = (trace: string) => ({ traceparent: `00-${trace}-${SPAN}-01` });

/** It sends them when its processes end, and not before: what arrives shows that the end waits for it. */
export async function startTraced(receiver: Pick<OtlpReceiver, "url">, { env, ...options }: PetstoreOptions = {}) {
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: "600000", ...env };
  const petstore = await startPetstore({ ...options, env: traced });

  async function ask<T>(verb: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const content = body && { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
    const answer = await fetch(petstore.http + path, { method: verb, headers, ...content });
    const text = await answer.text();
    const record = text === "" ? undefined : JSON.parse(text);
    return { status: answer.status, headers: answer.headers, record: record as T };
  }

  /** A pet that can be ordered. */
  async function newPet(): Promise<number> {
    const { record: category } = await ask<{ id: number }>("POST", "/categories", { name: "dogs" });
    const { record: pet } = await ask<{ id: number }>("POST", "/pets", { name: "Rex", categoryId: category.id });
    return pet.id;
  }
  const statusOf = async (pet: number) => (await ask<{ status: string }[]>("GET", `/pets?id=${pet}`)).record[0]?.status;
  return { ...petstore, ask, newPet, statusOf, http: petstore.http };
}
