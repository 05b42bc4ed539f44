let waiting: (() => void)[] = [];

/**
 * Runs `task` when the code that runs now has come to its end, before the loop goes on: one microtask for all tasks of the
 * turn, instead of a promise for each of a thousand watchers. Tasks run in the order in which they were given, also those
 * that a task gives. They must not throw: the others would run nevertheless, but late.
 */
export function atEndOfTurn(task: () => void): void {
  if (waiting.push(task) === 1) queueMicrotask(runAll);
}

function runAll(): void {
  let done = 0;
  try {
    for (; done < waiting.length; done++) (waiting[done] as () => void)();
    waiting = [];
  } finally {
    if (waiting.length > 0) {
      waiting = waiting.slice(done + 1);
      if (waiting.length > 0) queueMicrotask(runAll);
    }
  }
}
