import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { settings } from "./kubectl.ts";

export interface DriverCall {
  method: string;
  request: {
    volumeId: string;
    targetPath: string;
    volumeContext: Record<string, string>;
    publishContext: Record<string, string>;
  };
}

/** A CSI driver on the cluster's node, in a process that tests can kill. */
export interface DriverProcess {
  /** Modifying calls so far, across restarts. */
  calls(): DriverCall[];
  /** Folder with the files of a volume. */
  volumeDir(handle: string): string;
  start(): void;
  kill(): Promise<void>;
}

const program = fileURLToPath(new URL("../../packages/node-agent/src/testing/csi-driver-main.ts", import.meta.url));

/** Stores volumes in a temporary folder; stopped after the test. */
export function newDriverProcess(t: TestContext, name: string): DriverProcess {
  const dir = mkdtempSync(join(tmpdir(), "cox-driver-"));
  const registry = join(settings.state, "kubelet/plugins_registry");
  const logFile = join(dir, "calls.log");
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  t.after(async () => {
    await kill();
    for (const path of [join(registry, `${name}-reg.sock`), dir]) rmSync(path, { recursive: true, force: true });
  });
  return {
    calls: () =>
      readFileSync(logFile, "utf8")
        .split("\n")
        .slice(0, -1) // the last line may be incomplete
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line)),
    volumeDir: (handle) => join(dir, "volumes", handle),
    start() {
      const log = openSync(logFile, "a");
      child = spawn(process.execPath, ["-C", "cox-source", program, name, registry, dir], { stdio: ["ignore", log, log] });
      closeSync(log);
    },
    kill,
  };
}
