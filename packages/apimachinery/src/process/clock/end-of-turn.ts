/** Tasks of the current turn of the event loop, of which a process has one. */
let waiting: (() => void)[] = [];

/**
 * Runs `task` in a microtask that is shared by all tasks queued in the meantime, instead of one promise for each of a thousand
 * watchers. Tasks run in order, including those queued by a task. They must not throw: the remaining ones would be deferred to
 * another microtask.
 */
export function atEndOfTurn(task: () => void): void {
  if (waiting.push(task) === 1) queueMicrotask(runAll);
}

function runAll(): void {
  let done = 0;
  try {
    for (; done < waiting.length; done++) waiting[done]!();
    waiting = [];
  } finally {
    if (waiting.length > 0) {
      waiting = waiting.slice(done + 1);
      if (waiting.length > 0) queueMicrotask(runAll);
    }
  }
}
