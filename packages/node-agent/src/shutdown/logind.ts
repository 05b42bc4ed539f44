import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { connectToBus, type DbusConnection } from "../dbus/connection.ts";
import { variantIn } from "../dbus/message.ts";

/** Delays the machine's shutdown while it is held, at most for logind's InhibitDelayMaxSec. */
export interface InhibitLock {
  release(): void;
}

/** The logind calls for graceful node shutdown. */
export interface Logind {
  /** How long logind waits for inhibitor locks. */
  inhibitDelayMs(): Promise<number>;
  /** Writes a configuration drop-in and reloads logind. */
  overrideInhibitDelay(ms: number): Promise<void>;
  inhibitShutdown(): Promise<InhibitLock>;
  /** Calls `heard` with true when a shutdown begins, with false when it is cancelled. */
  onShutdown(heard: (goesDown: boolean) => void): Promise<void>;
  closed: Promise<void>;
  close(): void;
}

const service = "org.freedesktop.login1";
const object = "/org/freedesktop/login1";
const manager = "org.freedesktop.login1.Manager";
const overrideFile = "99-kubelet.conf";
const hangUp = 1;

/**
 * @param options.configDir directory of logind's configuration drop-ins
 * @param options.inhibitProgram program that takes and holds the lock for its lifetime: the lock is a file descriptor, and
 *   Node.js cannot receive descriptors over D-Bus
 * Source: pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go
 */
export async function connectToLogind(options: {
  clock: Clock;
  address?: string;
  configDir?: string;
  inhibitProgram?: string;
}): Promise<Logind> {
  const { configDir = "/etc/systemd/logind.conf.d", inhibitProgram = "systemd-inhibit" } = options;
  const bus: DbusConnection = await connectToBus(options.address);
  const locks = new Set<InhibitLock>();

  async function inhibitDelayMs(): Promise<number> {
    const request = { destination: service, path: object, interface: "org.freedesktop.DBus.Properties", member: "Get" };
    const body = [manager, "InhibitDelayMaxUSec"];
    const [answer] = await bus.call({ ...request, signature: "ss", body }).catch((err: Error) => {
      throw new Error(`failed reading InhibitDelayMaxUSec property from logind: ${err.message}`);
    });
    const { type, value } = variantIn(answer);
    if (type !== "t" || typeof value !== "bigint") throw new Error("InhibitDelayMaxUSec from logind is not a uint64 as expected");
    return Number(value / 1000n);
  }

  return {
    inhibitDelayMs,
    async overrideInhibitDelay(ms) {
      await makeFolder(configDir, 0o755);
      const text = `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${Math.round(ms / 1000)}\n`;
      await writeFile(join(configDir, overrideFile), text, { mode: 0o644 });
      const systemd = "org.freedesktop.systemd1";
      await bus
        .call({
          destination: systemd,
          path: "/org/freedesktop/systemd1",
          interface: `${systemd}.Manager`,
          member: "KillUnit",
          signature: "ssi",
          body: ["systemd-logind.service", "all", hangUp],
        })
        .catch((err: Error) => {
          throw new Error(`unable to reload logind conf: ${err.message}`);
        });
      // The reload is asynchronous (a signal), and can take seconds on a busy machine.
      for (let tries = 0; tries < 50 && (await inhibitDelayMs()) < ms; tries++) await options.clock.sleep(100);
    },
    async inhibitShutdown() {
      const lock = await holdLock(inhibitProgram, options.address);
      locks.add(lock);
      return {
        release() {
          locks.delete(lock);
          lock.release();
        },
      };
    },
    onShutdown: (heard) =>
      bus.onSignal({ path: object, interface: manager, member: "PrepareForShutdown" }, ([goesDown]) => {
        if (typeof goesDown === "boolean") heard(goesDown);
      }),
    closed: bus.closed,
    close() {
      for (const lock of locks) lock.release();
      bus.close();
    },
  };
}

/** The child exits when its stdin is closed, which also happens when this process dies. */
function holdLock(program: string, address: string | undefined): Promise<InhibitLock> {
  const what = ["--what=shutdown", "--who=kubelet", "--why=Kubelet needs time to handle node shutdown", "--mode=delay"];
  const child = spawn(program, [...what, "sh", "-c", "echo held; exec cat"], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...(address !== undefined && { DBUS_SYSTEM_BUS_ADDRESS: address }) },
  });
  return new Promise((resolve, reject) => {
    let problem = "";
    child.stdin.on("error", () => undefined); // the child exited
    child.stderr.on("data", (chunk: Buffer) => {
      problem = (problem + chunk.toString()).slice(-1000);
    });
    child.stdout.once("data", () => resolve({ release: () => child.stdin.end() }));
    child.once("error", (err) => reject(new Error(`failed creating systemd inhibitor: ${err.message}`)));
    child.once("exit", () => reject(new Error(`failed creating systemd inhibitor: ${problem.trim()}`)));
  });
}
