/** What Node 24 has, for Node 22: as much of it as the petstore uses. */
globalThis.AsyncDisposableStack ??= class AsyncDisposableStack {
  #disposals = [];
  #disposed = false;
  use(value) {
    const dispose = value[Symbol.asyncDispose] ?? value[Symbol.dispose];
    this.defer(() => dispose.call(value));
    return value;
  }
  defer(dispose) {
    if (this.#disposed) throw new ReferenceError("The stack is disposed already.");
    this.#disposals.push(dispose);
  }
  async disposeAsync() {
    this.#disposed = true;
    const failures = [];
    while (this.#disposals.length > 0)
      try {
        await this.#disposals.pop()();
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
  }
  [Symbol.asyncDispose]() {
    return this.disposeAsync();
  }
};
