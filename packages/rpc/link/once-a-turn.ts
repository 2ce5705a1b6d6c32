/**
 * Returns a function that does `work` once at the end of a turn of the event loop, however often it is called in it, so that
 * everything that becomes ready in one turn is sent together. If `isAlone` returns true, nothing else is to be expected, and
 * `work` runs on the next tick: HTTP/2 also sends at the end of a turn, so waiting for that would cost another turn.
 */
export function onceATurn(work: () => void, isAlone: () => boolean = () => false): () => void {
  let isDue = false;
  const run = () => {
    isDue = false;
    work();
  };
  return () => {
    if (isDue) return;
    isDue = true;
    if (isAlone()) process.nextTick(run);
    else setImmediate(run);
  };
}
