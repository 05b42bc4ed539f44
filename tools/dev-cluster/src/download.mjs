// @ts-check
// Plain JavaScript: `cox` runs it with any installed Node, before the project's own is available.
import { spawn } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * `download.mjs <what> <remedy> <log> <command> [arguments…]`: announces and runs a download command, and stops it when it makes
 * no progress for a minute. Its output is written to the log, whose end is printed on failure; while it runs, its last line is.
 * `COX_DOWNLOAD_PATIENCE` replaces the minute, in seconds.
 * Exit code: that of the command, 128 plus the number of the signal that ended it or this program; 75 (EX_TEMPFAIL) when it was stopped.
 */
const [what = "", remedy = "", log = "", command = "", ...args] = process.argv.slice(2);
const patienceMs = Number(process.env["COX_DOWNLOAD_PATIENCE"] || 60) * 1000;
const lookMs = Math.min(1000, patienceMs / 4);
const reportMs = Math.min(15_000, patienceMs / 2);

/** Minimum bytes per minute that count as progress; retries cause less. */
const progressBytes = 256 * 1024;
/** Minimum CPU time that counts as progress, such as unpacking; in ticks of 10 ms. */
const progressTicks = 100;

/** @param {string} text */
const say = (text) => void process.stderr.write(`cox: ${text}\n`);

/** @type {string | undefined} */
let endedBy;
let interrupted = 0;
for (const [name, number] of /** @type {const} */ ([
  ["SIGHUP", 1],
  ["SIGINT", 2],
  ["SIGTERM", 15],
]))
  process.on(name, () => {
    interrupted = 128 + number;
    end(`stopped by ${name}`);
  });

say(`fetching ${what}`);
writeFileSync(log, "");
// A separate session, to find the child processes and to forward Ctrl-C.
const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => appendFileSync(log, chunk));

/** @param {string} why */
function end(why) {
  if (endedBy !== undefined) return;
  endedBy = why;
  signalAll("SIGTERM");
  setTimeout(() => signalAll("SIGKILL"), 3_000).unref();
}

/** @param {NodeJS.Signals} signal */
function signalAll(signal) {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // already exited
  }
}

const start = performance.now();
let last = { bytes: 0, ticks: 0 };
let lastProgress = start;
let lastReport = start;
const timer = setInterval(() => {
  const now = performance.now();
  const used = usage(child.pid);
  last = { bytes: Math.min(last.bytes, used.bytes), ticks: Math.min(last.ticks, used.ticks) };
  if (used.bytes - last.bytes >= progressBytes || used.ticks - last.ticks >= progressTicks) {
    last = used;
    lastProgress = now;
  }
  if (now - lastProgress >= patienceMs) end(`no progress for ${Math.round(patienceMs / 1000)} s`);
  if (now - lastReport >= reportMs) {
    lastReport = now;
    say(`still fetching ${what}, for ${Math.round((now - start) / 1000)} s${lastLine()}`);
  }
}, lookMs);

/** What the command printed last, to show what it waits for. */
function lastLine() {
  const line = readFileSync(log, "utf8").trimEnd().split(/[\r\n]/).at(-1)?.trim();
  return line ? `: ${line.slice(0, 100)}` : "";
}

/**
 * Bytes read and written, and CPU time, of all processes of a session. Processes that exit reduce the sums, which only
 * underestimates progress.
 * Source: proc(5), /proc/<pid>/stat and /proc/<pid>/io
 * @param {number | undefined} session
 */
function usage(session) {
  const sum = { bytes: 0, ticks: 0 };
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(fields[3]) !== session) continue;
      sum.ticks += Number(fields[11]) + Number(fields[12]);
      const io = readFileSync(`/proc/${pid}/io`, "utf8");
      for (const match of io.matchAll(/^[rw]char: (\d+)$/gm)) sum.bytes += Number(match[1]);
    } catch {
      // already exited
    }
  }
  return sum;
}

child.once("error", (err) => finish(127, err.message));
child.once("close", (code, signal) => finish(code ?? (signal === null ? 1 : 128 + constants.signals[signal]), signal === null ? `ended with exit code ${code}` : `ended by ${signal}`));

/**
 * @param {number} code
 * @param {string} how
 */
function finish(code, how) {
  clearInterval(timer);
  if (code === 0 && endedBy === undefined) process.exit(0);
  const tail = readFileSync(log, "utf8").trimEnd().split("\n").slice(-15).join("\n");
  if (tail !== "" && interrupted === 0) process.stderr.write(`${tail}\n`);
  say(`cannot fetch ${what}: ${endedBy ?? how}${interrupted === 0 ? `; ${remedy}` : ""}`);
  process.exit(interrupted || (endedBy === undefined ? code : 75));
}
