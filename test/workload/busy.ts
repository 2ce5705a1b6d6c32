/** Clients that do everything that can be done, and never the same twice: what fails they leave as it is. */
export interface Answered {
  /** "POST /pets 201", with the template of the path. */
  readonly what: string;
  /** Of the record that is asked for, or was made. */
  readonly id: number;
  /** In milliseconds since 1970. */
  readonly at: number;
}

/** Goes on until the signal. Resolves to how many requests were answered. `hear` is told of each. */
export async function keepBusy(
  http: string,
  signal: AbortSignal,
  hear: (answered: Answered) => void = () => {},
): Promise<number> {
  let answers = 0;
  async function ask(method: string, route: string, id: number | undefined, body?: object): Promise<number> {
    const headers = { "content-type": "application/json", "idempotency-key": `"${crypto.randomUUID()}"` };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(http + route.replace(/{.*}/, `${id}`), init).catch(() => undefined);
    const record = (await response?.json().catch(() => ({}))) as { id?: number } | undefined;
    if (response) {
      answers++;
      hear({ what: `${method} ${route} ${response.status}`, id: id ?? Number(record?.id), at: Date.now() });
    }
    return Number(record?.id);
  }
  const [PET, ORDER, STOCK] = ["/pets/{petId}", "/store/orders/{orderId}", "/store/inventory/{petId}"];
  async function client(): Promise<void> {
    while (!signal.aborted) {
      const category = await ask("POST", "/categories", undefined, { name: "dogs" });
      const pet = await ask("POST", "/pets", undefined, { name: "Rex", categoryId: category });
      await ask("PATCH", STOCK, pet, { quantity: 3 });
      const place = () => ask("POST", "/store/orders", undefined, { petId: pet });
      const [complete, cancelled] = await Promise.all([place(), place(), place(), place()]);
      await ask("DELETE", "/categories/{categoryId}", category);
      await Promise.all([
        ask("PATCH", ORDER, complete, { complete: true }),
        ask("DELETE", ORDER, cancelled),
        ask("PATCH", PET, pet, { status: "sold" }),
        ask("PATCH", STOCK, pet, { quantity: 1 }),
      ]);
      await ask("DELETE", PET, pet);
    }
  }
  await Promise.all(Array.from({ length: 6 }, client));
  return answers;
}
