/**
 * Does work at the end of a turn of the event loop, once, however often it was asked for in it: what becomes ready in one
 * turn is sent together. Where nothing else is to be expected, `isAlone`, it is done as soon as what asked for it is done:
 * the end of a turn is a turn later for HTTP/2, which sends at the end of one, too.
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
