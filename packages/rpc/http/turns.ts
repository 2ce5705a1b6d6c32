/** Begins work in turns of the event loop, so that what is given up meanwhile is never begun. */

/** Begins, and returns whether it did: not if nobody wants the result any more. */
type Begin = () => boolean;

/** So much begins in one turn. */
const AT_ONCE = 64;

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order.
 */
export function createTurns(atOnce = AT_ONCE): (begin: Begin) => void {
  let isBusy = false;
  let arriving: Begin[] = [];
  let due: Begin[] = [];
  let next = 0;

  function take(): void {
    for (let begun = 0; begun < atOnce && next < due.length; next++) if (due[next]?.()) begun++;
    if (next === due.length) [due, arriving, next] = [arriving, [], 0];
    isBusy = due.length > 0;
    if (isBusy) setImmediate(take);
  }

  return (begin) => {
    if (isBusy) return void arriving.push(begin);
    isBusy = true;
    setImmediate(take);
    begin();
  };
}
