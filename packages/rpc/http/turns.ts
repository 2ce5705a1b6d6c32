/** Begins work in turns of the event loop, so that what is given up meanwhile is never begun. */

interface Work {
  readonly isGone: () => boolean;
  readonly begin: () => void;
}

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order.
 */
export function createTurns(atOnce: number): (work: Work) => void {
  let isBusy = false;
  let arriving: Work[] = [];
  let due: Work[] = [];
  let next = 0;

  function take(): void {
    for (let begun = 0; begun < atOnce && next < due.length; next++) {
      const work = due[next] as Work;
      if (work.isGone()) continue;
      work.begin();
      begun++;
    }
    if (next === due.length) [due, arriving, next] = [arriving, [], 0];
    isBusy = due.length > 0;
    if (isBusy) setImmediate(take);
  }

  return (work) => {
    if (isBusy) return void arriving.push(work);
    isBusy = true;
    setImmediate(take);
    work.begin();
  };
}
