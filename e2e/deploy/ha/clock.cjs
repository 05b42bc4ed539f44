// Loaded by --require into each daemon of a machine: shifts its time of day by the milliseconds in a file (COX_CLOCK_SHIFT names another one). Its monotonic clock goes on,
// and so does the clock by which OpenSSL judges certificates.
const { readFileSync } = require("node:fs");

const file = process.env.COX_CLOCK_SHIFT ?? "/etc/clock-shift";
const now = Date.now;
let shiftMs = 0;
Date.now = () => now() + shiftMs;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
  apply: () => new Date().toString(),
});

setInterval(() => {
  try {
    shiftMs = Number(readFileSync(file, "utf8"));
  } catch {
    shiftMs = 0;
  }
}, 100).unref();
