import { resolve } from "node:path";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";

/**
 * `process.ts <file>…`: runs test files one after the other in this process. The tests and hooks of a file are those of a suite with
 * the file's name. Its tests begin when it is loaded, and the next file is loaded when they have ended, both as in a process of its own.
 */
// A test may wait for what does not keep a process alive. Node keeps the process alive itself, but only until the first file has ended.
const alive = setInterval(() => {}, 2 ** 31 - 1);
for (const file of process.argv.slice(2)) {
  // The result is in the events, not in the promise.
  await suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
  // The reporter notes when the file has ended before the next one is loaded.
  await new Promise((done) => setImmediate(done));
}
clearInterval(alive);
