import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRunning, reserve } from "./reserve.ts";
import { waitFor } from "./wait-for.ts";

interface TestEtcd {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  readonly pid: number;
  /** Idempotent. The shared etcd stops with the process and needs no call. */
  stop(): Promise<void>;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

let shared: Promise<TestEtcd> | undefined;

/**
 * A real etcd on free ports with its own data directory, shared by all tests of the process and stopped with it. Tests
 * use separate key prefixes.
 */
export function startEtcd(_t?: TestContext): Promise<TestEtcd> {
  shared ??= startOwnEtcd();
  return shared;
}

/** A separate etcd for one test, which may stop, pause or compact it. */
export async function startOwnEtcd(t?: TestContext, extraFlags: readonly string[] = []): Promise<TestEtcd> {
  removeAbandoned();
  const directory = mkdtempSync(join(tmpdir(), `${folderPrefix}${process.pid}-`));
  let lastOutput = "";
  for (let attempt = 1; ; attempt++) {
    const [clientPort, peerPort] = await Promise.all([freePort(), freePort()]);
    const endpoint = `http://127.0.0.1:${clientPort}`;
    // The parent death signal stops etcd even when this process is killed.
    const flags = ["--pdeathsig", "KILL", "etcd", ...etcdFlags(directory, endpoint, `http://127.0.0.1:${peerPort}`, extraFlags)];
    const child = spawn("setpriv", flags, {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let exited = false;
    child.once("exit", () => {
      exited = true;
    });
    child.once("error", (err) => {
      exited = true;
      lastOutput = String(err);
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      lastOutput = (lastOutput + chunk.toString()).slice(-4000);
    });
    try {
      await waitFor(async () => exited || (await isHealthy(endpoint)), { timeoutMs: 120_000, what: "etcd to answer" });
    } catch (err) {
      child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
      throw err;
    }
    if (exited) {
      if (attempt < 3) continue; // the port was taken between being found and being used
      throw new Error(`etcd did not start: ${lastOutput}`);
    }
    return owned(child, endpoint, directory, t);
  }
}

/** Followed by the process that uses the folder. */
const folderPrefix = "cox-etcd-";

/** Removes the data of processes that were killed; a benchmark leaves gigabytes. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(folderPrefix) ? Number(name.slice(folderPrefix.length).split("-", 1)[0]) : Number.NaN;
    if (pid > 0 && !isRunning(pid)) rmSync(join(tmpdir(), name), { recursive: true, force: true, maxRetries: 10 });
  }
}

function owned(child: ChildProcess, endpoint: string, directory: string, t: TestContext | undefined): TestEtcd {
  const kill = (): void => {
    child.kill("SIGKILL");
    // An exit handler cannot wait for the child, which may still be writing files; hence the retries.
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  };
  process.once("exit", kill);
  child.unref();
  (child.stderr as unknown as { unref(): void }).unref();
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    if (child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.ref();
      child.kill("SIGKILL");
      await gone;
    }
    rmSync(directory, { recursive: true, force: true });
  };
  t?.after(stop);
  return { endpoint, pid: child.pid as number, stop };
}

/** Flags of a single-member cluster. */
export function etcdFlags(directory: string, client: string, peer: string, extra: readonly string[]): string[] {
  const flags = {
    "--data-dir": directory,
    "--listen-client-urls": client,
    "--advertise-client-urls": client,
    "--listen-peer-urls": peer,
    "--initial-advertise-peer-urls": peer,
    "--initial-cluster": `default=${peer}`,
    "--log-level": "error",
    "--logger": "zap",
  };
  return [...Object.entries(flags).flat(), "--unsafe-no-fsync", ...extra];
}

/** @returns false, too, when it does not answer within 10 s */
export async function isHealthy(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

/**
 * An unused TCP port of 127.0.0.1 outside the ephemeral range (32768 and above), so that the kernel does not assign it to
 * another socket before it is used, or while a test relies on nothing listening there. No other test gets it while this process runs.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(24_000, 30_000);
    if ((await canListen(port)) && reserve(`port-${port}`)) return port;
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
