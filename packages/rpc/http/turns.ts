/** Begins work in turns of the event loop, so that what is given up meanwhile is never begun. */

type Begin = () => void;

/** One in the queue. It is empty once that was begun or given up. */
interface Place {
  begin: Begin | undefined;
}

/** So much begins in one turn. */
const AT_ONCE = 64;

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order. Returns what gives it up: then it never begins,
 * and nothing is kept of it.
 */
export function createTurns(atOnce = AT_ONCE): (begin: Begin) => () => void {
  let isBusy = false;
  // Arrays that last a turn or few. Sets, from which what is given up is deleted, cost a fifth of a read.
  let arriving: Place[] = [];
  let due: Place[] = [];
  let next = 0;

  function take(): void {
    for (let begun = 0; begun < atOnce && next < due.length; next++) if (beginAt(due[next])) begun++;
    if (next === due.length) [due, arriving, next] = [arriving, [], 0];
    isBusy = due.length > 0;
    if (isBusy) setImmediate(take);
  }

  return (begin) => {
    if (!isBusy) {
      isBusy = true;
      setImmediate(take);
      begin();
      return () => {};
    }
    const place: Place = { begin };
    arriving.push(place);
    return () => (place.begin = undefined);
  };
}

/** Returns whether there was something to begin. */
function beginAt(place: Place | undefined): boolean {
  const begin = place?.begin;
  if (!place || !begin) return false;
  place.begin = undefined;
  begin();
  return true;
}
