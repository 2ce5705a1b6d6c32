/** Gives up streams that have become silent. */

/** The petstore sends a message every 15 s at least. A stream that is silent for three times as long is dead. */
const SILENCE_MS = 45_000;

/**
 * Yields the messages of a stream, and throws when none has come for SILENCE_MS. The stream is closed however the loop ends.
 */
export async function* untilSilent<M>(
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
    // Without this, it would look as if the caller had cancelled.
    throw isSilent ? new Error(`nothing came for ${SILENCE_MS / 1000} s`) : error;
  } finally {
    over.abort();
  }
}
