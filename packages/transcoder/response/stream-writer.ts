/** How one answer is written whose messages come one after the other. */
export interface StreamWriter<M> {
  /** What the answer begins with. */
  readonly head: string;
  readonly message: (message: M) => string | Uint8Array;
  /** Shows that the connection lives. Empty in a form that has nothing for that. */
  readonly heartbeat: () => string;
  /** The last of an answer that failed, by the error as JSON text. Empty in a form that has nothing for that. */
  readonly error: (json: string) => string;
  /** What ends an answer that is whole. */
  readonly end: string;
}
