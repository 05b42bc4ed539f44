import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { etcdFlags, freePort, isHealthy } from "./etcd.ts";
import { waitFor } from "./wait-for.ts";

/** An etcd that can be put back to what it held before, under the same address. */
export interface RestorableEtcd {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** Keeps a copy of the data as they are on disk now; etcd goes on. */
  save(): void;
  /** Stops etcd, puts back what `save` kept, and starts it. */
  restore(): Promise<void>;
}

export async function startRestorableEtcd(t: { after(fn: () => void | Promise<void>): void }): Promise<RestorableEtcd> {
  const directory = mkdtempSync(join(tmpdir(), "cox-restorable-etcd-"));
  const [data, backup] = [join(directory, "data"), join(directory, "backup")];
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const flags = etcdFlags(data, endpoint, `http://127.0.0.1:${await freePort()}`, []);
  let child: ChildProcess;

  const start = async (): Promise<void> => {
    // However this process ends, killed too, its etcd ends with it.
    child = spawn("setpriv", ["--pdeathsig", "KILL", "etcd", ...flags], { stdio: "ignore" });
    await waitFor(() => isHealthy(endpoint), { timeoutMs: 120_000, what: "etcd to answer" });
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  t.after(async () => {
    await stop();
    rmSync(directory, { recursive: true, force: true });
  });
  await start();
  return {
    endpoint,
    save() {
      // A process that stands still leaves its files as a crash would: the log has all that was acknowledged.
      child.kill("SIGSTOP");
      try {
        rmSync(backup, { recursive: true, force: true });
        cpSync(data, backup, { recursive: true });
      } finally {
        child.kill("SIGCONT");
      }
    },
    async restore() {
      await stop();
      rmSync(data, { recursive: true });
      cpSync(backup, data, { recursive: true });
      await start();
    },
  };
}
