/** Begins work in turns of the event loop, so that what is given up meanwhile is never begun. */

type Begin = () => void;

/** So much begins in one turn. */
const AT_ONCE = 64;

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order. Returns what gives it up: then it never begins,
 * and nothing is kept of it.
 */
export function createTurns(atOnce = AT_ONCE): (begin: Begin) => () => void {
  let isBusy = false;
  let arriving = new Set<Begin>();
  let due = new Set<Begin>();

  function take(): void {
    let begun = 0;
    for (const begin of due) {
      if (begun++ === atOnce) break;
      due.delete(begin);
      begin();
    }
    if (due.size === 0) [due, arriving] = [arriving, due];
    isBusy = due.size > 0;
    if (isBusy) setImmediate(take);
  }

  return (begin) => {
    if (!isBusy) {
      isBusy = true;
      setImmediate(take);
      begin();
      return () => {};
    }
    arriving.add(begin);
    return () => void (arriving.delete(begin) || due.delete(begin));
  };
}
