import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { etcdFlags, freePort, isHealthy } from "./etcd.ts";
import { waitFor } from "./wait-for.ts";

/** An etcd whose data can be restored to an earlier state, at the same address. */
interface RestorableEtcd {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** Copies the current data directory; etcd continues to run. */
  save(): void;
  /** Stops etcd, restores the copy made by `save`, and starts etcd. */
  restore(): Promise<void>;
}

/** Starts etcd and waits until it responds; after the test it is stopped and its data are removed. */
export async function startRestorableEtcd(t: { after(fn: () => void | Promise<void>): void }): Promise<RestorableEtcd> {
  const directory = mkdtempSync(join(tmpdir(), "cox-restorable-etcd-"));
  const [data, backup] = [join(directory, "data"), join(directory, "backup")];
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const flags = etcdFlags(data, endpoint, `http://127.0.0.1:${await freePort()}`, []);
  let child: ChildProcess;

  const start = async (): Promise<void> => {
    // The parent death signal stops etcd even when this process is killed.
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
      // The files of a stopped process are crash-consistent: the WAL has all acknowledged writes.
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
