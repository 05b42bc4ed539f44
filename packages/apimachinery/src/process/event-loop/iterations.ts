/**
 * Resolves in the next iteration of the event loop, after I/O that is ready. For waiting until something else has happened: work
 * that may be long yields by `Turns`, which counts what all parts of the program do in one iteration.
 */
export const nextIteration = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
