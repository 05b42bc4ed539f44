// Loaded into a process by --import: writes what it holds after a collection, each minute, to the file COX_LEAK_FILE.
import { appendFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const file = process.env["COX_LEAK_FILE"];
const note = () => {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  setFlagsFromString("--no-expose-gc");
  const kinds = Object.groupBy(process.getActiveResourcesInfo(), (kind) => kind);
  const resources = Object.fromEntries(Object.entries(kinds).map(([kind, all]) => [kind, all.length]));
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  appendFileSync(file, `${JSON.stringify({ at: Date.now(), heapUsed, external, arrayBuffers, resources })}\n`);
};
if (file !== undefined) setInterval(note, 60_000).unref();
