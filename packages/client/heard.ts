/** A stream for as long as it says anything. */

/** The petstore says something every 15 s. A stream that was silent for three times as long is dead. */
const SILENCE_MS = 45_000;

/** What a stream says, until it has said nothing for too long, which is an error. However it is left, it is closed. */
export async function* heard<M>(
  open: (signal: AbortSignal) => AsyncIterable<M>,
  signal: AbortSignal | undefined,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): AsyncGenerator<M> {
  const over = new AbortController();
  let isSilent = false;
  const giveUp = () => {
    isSilent = true;
    over.abort();
  };
  try {
    const stream = open(signal ? AbortSignal.any([signal, over.signal]) : over.signal)[Symbol.asyncIterator]();
    for (;;) {
      const answered = new AbortController();
      void sleep(SILENCE_MS, answered.signal).then(() => answered.signal.aborted || giveUp());
      const next = await stream.next().finally(() => answered.abort());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    // Not as if somebody had cancelled it.
    throw isSilent ? new Error(`nothing came for ${SILENCE_MS / 1000} s`) : error;
  } finally {
    over.abort();
  }
}
