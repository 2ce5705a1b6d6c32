/**
 * Does work at the end of a turn of the event loop, once, however often it was asked for in it: what becomes ready in one
 * turn is sent together.
 */
export function onceATurn(work: () => void): () => void {
  let isDue = false;
  const run = () => {
    isDue = false;
    work();
  };
  return () => {
    if (isDue) return;
    isDue = true;
    setImmediate(run);
  };
}
